import StateEngine

/// One run of a transaction's body, and its commit.
struct TransactionRun<R> {
    private let result: R
    private let entries: [any TransactionEntry]
    /// Those in a keyspace, in the order of their keys; empty where all are in memory.
    private let stored: [any StoredTransactionEntry]
    private var holdsTurns = false
    private var isCommitted = false

    /// Runs the body.
    ///
    /// - Parameters:
    ///   - patience: Ends runs that read what is refused as old, again and again.
    ///   - body: What reads and writes.
    /// - Throws: What it threw, or why its result may not be committed.
    init(
        _ patience: inout StalePatience,
        _ body: (inout StateTransaction) throws -> R
    ) throws {
        var transaction = StateTransaction()
        result = try body(&transaction)
        entries = transaction.entries
        stored = entries.compactMap { $0 as? any StoredTransactionEntry }
            .sorted { $0.key < $1.key }
        guard stored.isEmpty || stored.count == entries.count && TransactionRun.isOneStore(stored)
        else { throw TransactionRun.mixed(entries) }
        if let first = entries.first { try patience.check(entries.map(\.read), of: first.key) }
        guard entries.count <= StateTransaction.limit else {
            throw StateError(
                .tooBig,
                "a transaction is of \(StateTransaction.limit) containers at most, not \(entries.count)"
            )
        }
        for entry in entries { try entry.validate() }
        for entry in entries { entry.waitForRoom() }
    }

    /// Ends the process where its keyspace waits for the caller.
    func checkMayWait() { stored.first?.hub.waitable?.checkMayWait() }

    /// What takes turns: those that are written.
    var writtenInKeyspace: [any StoredTransactionEntry] { stored.filter(\.isWritten) }

    /// Commits what is in memory, or submits what is in a keyspace.
    ///
    /// - Parameters:
    ///   - commitsOnCaller: Whether the caller calls ``wait(for:)`` next.
    ///   - take: Takes a turn, where the caller has not.
    /// - Returns: What to wait for; nil where there is nothing.
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

    /// Waits until a commit is answered; this thread commits it where nobody else does.
    func wait(for commit: Answer?) {
        commit?.wait(committingIn: stored.first?.hub.waitable)
    }

    /// Takes the answer and has the changes told.
    ///
    /// - Returns: The body's result; nil where it has to run again.
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
        // One order for all transactions, so that none waits for another that waits for it.
        return commit(entries.sorted { $0.place < $1.place }[...])
    }

    private static func isOneStore(_ entries: [any StoredTransactionEntry]) -> Bool {
        entries.allSatisfy { $0.hub === entries[0].hub }
    }

    private static func mixed(_ entries: [any TransactionEntry]) -> StateError {
        let keys = entries.map { "'\($0.key)'" }.joined(separator: ", ")
        return StateError(
            .mixedKeyspaces,
            "a transaction is of one keyspace, or in memory; these are not: \(keys)"
        )
    }
}
