import StateEngine

/// One container of a keyspace in a transaction.
protocol StoredTransactionEntry: TransactionEntry {
    var hub: KeyspaceHub { get }
    var turn: Turn { get }
    /// Whether the value is unchanged since it was read.
    var isCurrent: Bool { get }

    /// The mutation to submit.
    func mutation() throws(StateError) -> Mutation

    /// Registers a change whose answer is expected.
    func expect()

    /// Records the revision number that the commit gets if it succeeds.
    func promise(_ number: Int64)

    /// Takes the keyspace's answer, on any thread.
    var settle: @Sendable (Result<Int64, StateError>) -> Void { get }
}

extension StateTransaction {
    final class StoredEntry<Value: Codable & Sendable>: Entry<Value>, StoredTransactionEntry {
        private let stored: PersistentCore<Value>
        private let base: PersistentCore<Value>.Base
        private let expiry: Expiry
        private let answer = Answer()

        init(
            _ core: PersistentCore<Value>,
            _ base: PersistentCore<Value>.Base,
            check: StateCore<Value>.Check?,
            _ expiry: Expiry
        ) {
            stored = core
            self.expiry = expiry
            self.base = base
            super.init(core, base.value, base.revision, check: check)
        }

        var hub: KeyspaceHub { stored.hub }
        var turn: Turn { stored.turn }
        var isCurrent: Bool { stored.base.revision == base.revision }

        func mutation() throws(StateError) -> Mutation {
            if let error = base.unreadable { throw error }
            guard isWritten else { return .check(key, revision: base.entryRevision) }
            guard let bytes = try stored.encode(value) else {
                return .delete(key, ifRevision: base.entryRevision)
            }
            return .set(key, bytes, ifRevision: base.entryRevision, expires: expiry)
        }

        func expect() {
            guard isWritten else { return }
            let bytes = try? stored.codec.encode(value)
            stored.expect(answer, value, bytes ?? nil, isEarly: false)
        }

        func promise(_ number: Int64) { if isWritten { _ = stored.promise(answer, number) } }

        var settle: @Sendable (Result<Int64, StateError>) -> Void {
            guard isWritten else { return { _ in } }
            return { [stored, answer] in stored.settle(answer, $0) }
        }
    }
}
