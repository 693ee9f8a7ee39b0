/// The transaction that is open, as a command that writes has it: nothing else of the keyspace.
///
/// Who carries commands out begins a transaction before it hands this to a command, and finishes or rolls it back after that. Everything
/// that is seen through it is noted in the receipt of the command's answer.
package struct Transaction: ~Copyable {
    private let core: KeyspaceCore
    /// Of the answer to the command.
    package var receipt: Receipt

    /// - Parameters:
    ///   - core: The keyspace, whose lock is held.
    ///   - receipt: Of the answer to the command.
    package init(in core: KeyspaceCore, _ receipt: consuming Receipt) {
        self.core = core
        self.receipt = receipt
    }

    /// Sets `key`; see ``KeyspaceCore/set(_:to:appending:isConditional:)``.
    package mutating func set(
        _ key: Bytes,
        to value: Bytes,
        appending suffix: Bytes? = nil,
        isConditional: Bool = false
    ) throws(StateError) {
        try core.set(key, to: value, appending: suffix, isConditional: isConditional)
    }

    /// Deletes `key`; see ``KeyspaceCore/delete(_:_:)``.
    ///
    /// - Returns: Whether it was there.
    @discardableResult
    package mutating func delete(_ key: Bytes) throws(StateError) -> Bool {
        try core.delete(key, &receipt)
    }

    /// Checks a condition of a key as who writes sees it; see ``KeyspaceCore/check(_:of:_:)``.
    package mutating func check(_ condition: Condition, of key: Bytes) throws(StateError) {
        try core.check(condition, of: key, &receipt)
    }

    /// The newest version of a key as who writes sees it; see ``KeyspaceCore/look(at:for:_:)``.
    package mutating func look(at key: Bytes) throws(StateError) -> Record? {
        try core.look(at: key, for: core.transaction.subject, &receipt)
    }

    /// The same, where nobody is told that a key is hidden; nil sees every key.
    package mutating func read(_ key: Bytes, for subject: Subject? = nil) -> Record? {
        core.read(key, for: subject, &receipt)
    }

    /// Sets a note, or removes it; see ``KeyspaceCore/setNote(_:to:)``.
    package mutating func setNote(_ name: String, to text: String?) throws(StateError) {
        try core.setNote(name, to: text)
    }

    /// Brings a key to what it was, as the daemon itself; nil deletes it.
    package mutating func restore(_ key: Bytes, to value: Bytes?) throws(StateError) {
        try core.asDaemon { () throws(StateError) in
            if let value { try core.set(key, to: value) } else { try core.delete(key, &receipt) }
        }
    }

    /// The revision that the transaction will have.
    package var revision: Int64 { core.transaction.revision }

    /// The same, or the newest revision if the transaction has changed nothing.
    package var reachedRevision: Int64 {
        core.transaction.hasChanges
            ? core.transaction.revision
            : max(core.revisions.provisional, core.revisions.durable)
    }
}
