/// The open transaction, as a command that writes sees it: nothing else of the keyspace.
///
/// The caller of a command begins a transaction before the command, and finishes or rolls it back
/// afterwards. Everything read through it is recorded in the receipt of the command's answer.
package struct Transaction: ~Copyable {
    let core: KeyspaceCore
    /// The receipt of the answer to the command.
    package var receipt: Receipt

    /// - Parameters:
    ///   - core: The keyspace, whose lock is held.
    ///   - receipt: The receipt of the answer to the command.
    package init(in core: KeyspaceCore, _ receipt: consuming Receipt) {
        self.core = core
        self.receipt = receipt
    }

    /// Sets `key`; see
    /// ``KeyspaceCore/set(_:to:appending:isConditional:expiry:isRenewal:operation:)``.
    package mutating func set(
        _ key: Bytes,
        to value: Bytes,
        appending suffix: Bytes? = nil,
        isConditional: Bool = false,
        expiry: Expiry = .ruled,
        operation: ChangeOperation = .plain
    ) throws(StateError) {
        try core.set(
            key,
            to: value,
            appending: suffix,
            isConditional: isConditional,
            expiry: expiry,
            operation: operation
        )
    }

    /// Changes when the value of `key`, whose newest version is `record`, expires; a time that is
    /// over deletes it.
    package mutating func renew(
        _ key: Bytes,
        _ record: Record,
        _ expiry: Expiry
    ) throws(StateError) {
        let present = core.transaction.presentTime
        if let time = expiry.time(from: present), time <= present {
            try delete(key)
        } else if let value = record.value {
            try core.set(key, to: value, isConditional: true, expiry: expiry, isRenewal: true)
        }
    }

    /// Deletes `key`; see ``KeyspaceCore/delete(_:_:operation:)``.
    ///
    /// - Returns: Whether it existed.
    @discardableResult
    package mutating func delete(
        _ key: Bytes,
        operation: ChangeOperation = .plain
    ) throws(StateError) -> Bool {
        try core.delete(key, &receipt, operation: operation)
    }

    /// Checks a condition of a key as the writer sees it; see ``KeyspaceCore/check(_:of:_:)``.
    package mutating func check(_ condition: Condition, of key: Bytes) throws(StateError) {
        try core.check(condition, of: key, &receipt)
    }

    /// The newest version of a key as the writer sees it; see ``KeyspaceCore/look(at:for:_:)``.
    package mutating func look(at key: Bytes) throws(StateError) -> Record? {
        try core.look(at: key, for: core.transaction.subject, &receipt)
    }

    /// The same, for replies that do not reveal whether a key is hidden; a nil subject sees every
    /// key.
    package mutating func read(_ key: Bytes, for subject: Subject? = nil) -> Record? {
        core.read(key, for: subject, &receipt)
    }

    /// Sets metadata; see ``KeyspaceCore/setMetadata(_:to:isDeferrable:)``.
    package mutating func setMetadata(
        _ name: String,
        to text: String?,
        isDeferrable isLate: Bool = false
    ) throws(StateError) { try core.setMetadata(name, to: text, isDeferrable: isLate) }

    /// Restores a key's former value, with the daemon's own permissions; nil deletes it.
    package mutating func restore(
        _ key: Bytes,
        to value: Bytes?,
        _ expiry: Expiry = .ruled
    ) throws(StateError) {
        try core.asDaemon { () throws(StateError) in
            guard let value else {
                try core.delete(key, &receipt)
                return
            }
            try core.set(key, to: value, expiry: expiry)
        }
    }

    /// Storage has the transaction before its answer, whatever the rules of its keys allow.
    package mutating func storeAtOnce() { core.transaction.isStoredAtOnce = true }

    /// The revision that the transaction will have.
    package var revision: Int64 { core.transaction.revision }

    /// The same, or the newest revision if the transaction has changed nothing.
    package var reachedRevision: Int64 {
        core.transaction.hasChanges
            ? core.transaction.revision
            : max(core.revisions.provisional, core.revisions.durable)
    }
}

/// Whose end deletes the keys that a writer sets with a lifetime.
package protocol WritersHolders: AnyObject {
    /// The writer's connection or process; called under the keyspace's lock.
    ///
    /// - Throws: Why it has none.
    func holder(_ lifetime: Lifetime) throws(StateError) -> Holder
}

/// The open transaction: its changes, and who makes it.
package struct OpenTransaction: ~Copyable {
    /// The revision that it takes when it is finished; 0 if no transaction is open.
    package private(set) var revision: Int64 = 0
    /// Milliseconds since 1970.
    private(set) var time: Int64 = 0
    /// From when times are counted: a command that is carried out again is as old as it was.
    var presentTime: Int64 { cluster?.asOf ?? time }
    /// Who needs permission; nil if everything is allowed.
    var subject: Subject?
    /// Held by its session, which outlives the transaction.
    private(set) var cause: Unmanaged<InternedCause>?
    /// Nil for a change that a later one of the same transaction reversed.
    var changes: [Record?] = []
    /// Bytes of keys, values and metadata.
    var byteCount = 0
    /// The highest durability that the rules of its keys require.
    var durability = Durability.memory
    /// Whether its writer waits for storage, whatever the rules of its keys allow.
    var isStoredAtOnce = false
    var metadata: [MetadataEntry] = []
    /// The holders of its keys, held by its session; nil if no client makes it.
    private(set) unowned(unsafe) var holders: (any WritersHolders)?
    /// The writes that it has taken from the rate limits, to give back if it is rolled back.
    var rates: [(rate: WriteRate, uid: UInt32)] = []
    /// What it has to do with files.
    var files = FileWork()
    /// The owner of what its next change creates, if that is not the writer: of a file, or of an
    /// adopted value.
    var nextOwner: UInt32?
    /// What it has to do with the keys of a cluster; nil if there are none.
    package internal(set) var cluster: ClusterUse?
    /// Whether it makes changes that a cluster has decided: no rule is asked, and no limit.
    var isDecided = false

    var isOpen: Bool { revision != 0 }

    /// Whether a cluster must decide.
    @inline(__always)
    package var awaitsCluster: Bool {
        guard let cluster else { return false }
        return cluster.isUsed && !isDecided
    }

    /// Whether it has changed an entry so far.
    package var hasChanges: Bool { changes.contains { $0 != nil } }

    mutating func begin(
        _ revision: Int64,
        at time: Int64,
        by cause: InternedCause,
        _ subject: Subject?,
        _ holders: (any WritersHolders)?
    ) {
        precondition(!isOpen, "a transaction is open")
        (self.revision, self.time, self.subject) = (revision, time, subject)
        self.cause = .passUnretained(cause)
        self.holders = holders
        (durability, isStoredAtOnce) = (.memory, false)
        cluster?.reset()
    }

    /// What follows is written by somebody else, in the same transaction.
    mutating func goOn(as cause: InternedCause) { self.cause = .passUnretained(cause) }

    /// Numbers the remaining changes of the commit.
    ///
    /// - Returns: Whether there are any, or metadata.
    mutating func seal() -> Bool {
        if changes.contains(nil) {
            changes.removeAll { $0 == nil }
            for (index, record) in changes.enumerated() { record?.ordinal = Int32(index) }
        }
        return !changes.isEmpty || !metadata.isEmpty
    }

    mutating func end() {
        if files.steps > 0 || files.writer != nil { files = FileWork() }
        (revision, subject, cause, byteCount) = (0, nil, nil, 0)
        holders = nil
        if isDecided { (isDecided, nextOwner) = (false, nil) }
        if !rates.isEmpty { rates.removeAll() }
        if !metadata.isEmpty { metadata = [] }
        changes.removeAll(keepingCapacity: changes.capacity <= 4_096)
    }

    /// - Throws: ``StateError/Code/tooBig`` if a change of `byteCount` bytes would exceed `bytes`
    ///   or `changes`.
    @inline(__always)
    func checkRoom(for byteCount: Int, _ bytes: Int, _ changes: Int) throws(StateError) {
        guard self.byteCount + byteCount <= bytes || isDecided else {
            throw OpenTransaction.full(bytes, "bytes of keys and values")
        }
        guard self.changes.count < changes || isDecided else {
            throw OpenTransaction.full(changes, "changes")
        }
    }

    @inline(never)
    private static func full(_ most: Int, _ unit: StaticString) -> StateError {
        StateError(.tooBig, "a transaction can have at most \(most) \(unit)")
    }
}

/// What an answer depends on: it is sent once everything that it reports is on stable storage.
///
/// Whatever reads or writes a ``KeyspaceCore`` for an answer takes that answer's receipt and
/// records in it what was read. So no answer, be it a value or an error, can ignore what it depends
/// on. A receipt cannot be copied, and only ``KeyspaceCore/makeReceipt()`` makes one: the sender of
/// the answer calls it, once for each.
@usableFromInline
package struct Receipt: ~Copyable {
    /// The answer waits until this commit is on stable storage; 0 if it waits for none.
    @usableFromInline package private(set) var revision: Int64 = 0
    /// The answer waits until this commit is kept, which storage may have later; 0 if none is in it.
    @usableFromInline package private(set) var published: Int64 = 0
    /// The commit that the answer reports without waiting for it; 0 for none.
    @usableFromInline package private(set) var reportedRevision: Int64 = 0
    /// Whether no failure of storage undoes what the answer waits for: then it waits only for
    /// watches to be sent first.
    @usableFromInline package private(set) var isFinal = false

    @inlinable init() {}

    /// What the answer to a write waits for.
    package enum Wait {
        /// Stable storage, unless the rules of all its keys let storage have them later.
        case storage
        /// What the rules of the keys require.
        case rules
        /// Nothing: the client has asked not to wait for its own commit.
        case nothing
    }

    /// The answer depends on nothing that was read so far: it reports none of it, or its client
    /// wrote it.
    package mutating func waiveReads() { (revision, published) = (0, 0) }

    /// A version was read that is not on stable storage yet.
    @inline(__always)
    mutating func noteRead(_ record: Record) {
        if !record.isPublished {
            noteRead(record.revision)
        } else if !record.isVolatile {
            notePublished(record.revision)
        }
    }

    /// The answer shows a commit that nobody undoes and that storage may have later.
    mutating func notePublished(_ revision: Int64) { published = max(published, revision) }

    /// A change was read whose commit is not on stable storage yet.
    @inline(__always)
    package mutating func noteRead(_ revision: Int64) {
        guard revision > self.revision else { return }
        self.revision = revision
        isFinal = false
    }

    /// The answer reports a commit and waits for it.
    ///
    /// - Parameters:
    ///   - revision: The commit's revision.
    ///   - isFinal: Whether nothing undoes it.
    package mutating func noteCommit(_ revision: Int64, isFinal: Bool = false) {
        self.revision = max(self.revision, revision)
        self.isFinal = isFinal
    }

    /// The answer reports a commit and does not wait for it.
    mutating func noteReported(_ revision: Int64) { reportedRevision = revision }
}

extension KeyspaceCore {
    /// A receipt for one answer.
    @inlinable package func makeReceipt() -> Receipt { Receipt() }
}
