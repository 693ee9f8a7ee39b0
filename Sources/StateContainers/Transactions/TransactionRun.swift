import StateEngine

/// One run of a transaction's body, and its commit.
struct TransactionRun<R> {
    private let result: R
    private let entries: [any TransactionEntry]
    /// The entries in a keyspace, in the order of their keys; empty if all are in memory.
    private let stored: [any StoredTransactionEntry]
    private var holdsTurns = false
    private var isCommitted = false

    /// Runs the body.
    ///
    /// - Parameters:
    ///   - patience: Ends runs whose reads storage keeps refusing as outdated.
    ///   - caller: Names the transaction to those who use a container in its body.
    ///   - body: Reads and writes.
    /// - Throws: What `body` threw, or why its result cannot be committed.
    init(
        _ patience: inout StalePatience,
        _ caller: TransactionCaller,
        _ body: (inout StateTransaction) throws -> R
    ) throws {
        RunningBody.check("withTransaction")
        var transaction = StateTransaction(caller)
        result = try RunningBody.with(caller) { try body(&transaction) }
        entries = transaction.entries
        stored = entries.compactMap { $0 as? any StoredTransactionEntry }
            .sorted { $0.key < $1.key }
        guard stored.isEmpty || stored.count == entries.count && TransactionRun.isOneStore(stored)
        else { throw TransactionRun.mixed(entries) }
        if let first = entries.first { try patience.check(entries.map(\.read), of: first.key) }
        guard entries.count <= StateTransaction.limit else {
            throw StateError(
                .tooBig,
                "a transaction can use at most \(StateTransaction.limit) containers, "
                    + "not \(entries.count)"
            )
        }
        for entry in entries { try entry.validate() }
        for entry in entries { entry.waitForRoom() }
    }

    /// Ends the process if the keyspace waits for the calling thread.
    func checkMayWait() { stored.first?.hub.waitable?.checkMayWait() }

    /// The written entries, which need turns.
    var writtenInKeyspace: [any StoredTransactionEntry] { stored.filter(\.isWritten) }

    /// Commits in memory, or submits to the keyspace.
    ///
    /// - Parameters:
    ///   - commitsOnCaller: Whether the caller calls ``wait(for:)`` next.
    ///   - take: Takes a turn, unless the caller has taken it.
    /// - Returns: The answer to wait for; nil if there is none.
    /// - Throws: Why a value cannot be stored; no turn is held then.
    mutating func begin(commitsOnCaller: Bool, _ take: (Turn) -> Void) throws -> Answer? {
        guard let hub = stored.first?.hub else {
            isCommitted = commitInMemory()
            return nil
        }
        for entry in writtenInKeyspace { take(entry.turn) }
        holdsTurns = true
        do {
            guard stored.allSatisfy(\.isCurrent) else {
                giveTurns()
                return nil
            }
            let mutations = try stored.map { try $0.mutation() }
            return submit(mutations, to: hub, commitsOnCaller: commitsOnCaller)
        } catch {
            giveTurns()
            throw error
        }
    }

    /// Waits until a commit is answered; this thread commits it if no other does.
    func wait(for commit: Answer?) {
        commit?.wait(committingIn: stored.first?.hub.waitable)
    }

    /// Takes the answer and delivers the changes.
    ///
    /// - Returns: The body's result; nil if it must run again.
    mutating func end(_ commit: Answer?) throws(StateError) -> R? {
        giveTurns()
        for entry in entries { entry.drain() }
        switch commit?.result {
        case nil: return isCommitted ? result : nil
        case .success: return result
        case .failure(let error) where error.code == .conflict: return nil
        case .failure(let error): throw error
        }
    }

    private mutating func submit(
        _ mutations: [Mutation],
        to hub: KeyspaceHub,
        commitsOnCaller: Bool
    ) -> Answer {
        let answer = Answer()
        for entry in stored { entry.expect() }
        let settlements = stored.map(\.settle)
        let number = hub.submit(mutations, commitsOnCaller: commitsOnCaller) { result in
            for settle in settlements { settle(result) }
            answer.put(result)
        }
        if let number {
            for entry in stored { entry.promise(number) }
            giveTurns()
        }
        return answer
    }

    private mutating func giveTurns() {
        guard holdsTurns else { return }
        holdsTurns = false
        for entry in writtenInKeyspace { entry.turn.give() }
    }

    private func commitInMemory() -> Bool {
        func commit(_ rest: ArraySlice<any TransactionEntry>) -> Bool {
            guard let first = rest.first else { return true }
            return first.commitInMemory { commit(rest.dropFirst()) }
        }
        // One order for all transactions, so that no two wait for each other.
        return commit(entries.sorted { $0.place < $1.place }[...])
    }

    private static func isOneStore(_ entries: [any StoredTransactionEntry]) -> Bool {
        entries.allSatisfy { $0.hub === entries[0].hub }
    }

    private static func mixed(_ entries: [any TransactionEntry]) -> StateError {
        let keys = entries.map { "'\($0.key)'" }.joined(separator: ", ")
        return StateError(
            .mixedKeyspaces,
            "a transaction must use one keyspace, or memory only; these containers differ: \(keys)"
        )
    }
}
