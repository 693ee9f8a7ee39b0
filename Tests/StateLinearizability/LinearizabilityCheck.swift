/// Whether a history of single-key operations is linearizable: whether each may have happened at one moment
/// between its request and its answer, and those of one client in the order in which they were sent.
///
/// Linearizability is compositional (Herlihy and Wing, 1990), so each key is searched apart: Wing and Gong's
/// search for an order, with Lowe's memory of configurations (https://doi.org/10.1002/cpe.3928): what was placed, and
/// the state that it left. An operation may come next where no operation that is left had ended before it was sent.
///
/// A lost operation is placed or left out. Placing what was sent after it could last have happened rules it out.
///
/// - Complexity: for a key with *n* operations of *c* clients O(*n* · 2^*c*) configurations of *n*/64 words each
///   at worst; lost operations count as clients until they can happen no more. Histories of 8 clients on a
///   few keys take two to three configurations an operation: an answer that changes nothing is placed without choice.
package struct LinearizabilityCheck {
    /// How many configurations of one key are looked at before giving up.
    package var configurationLimit = 1_000_000

    package init() {}

    /// Checks every key of a history.
    ///
    /// - Returns: One verdict for each key, by key.
    package func verdicts(of history: [Operation]) -> [(key: String, verdict: Verdict)] {
        Dictionary(grouping: history, by: \.key).sorted { $0.key < $1.key }.map { key, operations in
            (key, verdict(of: operations))
        }
    }

    /// Checks the history of one key, which begins absent.
    package func verdict(of operations: [Operation]) -> Verdict {
        let sorted = operations.filter(\.isObservation).enumerated()
            .sorted { ($0.element.invoked, $0.offset) < ($1.element.invoked, $1.offset) }
            .map(\.element)
        var search = LinearizationSearch(sorted)
        return search.run(limit: configurationLimit)
    }
}

/// The search for an order of one key's operations, which are sorted by the time at which they were sent.
private struct LinearizationSearch {
    private let operations: [Operation]

    // The configuration.
    private var placed: [UInt64]
    private var state = KeyState()
    // What follows from it.
    private var path: [Placed] = []
    private var mandatoryLeft: Int
    /// The latest time at which a placed operation was sent.
    private var latestInvocation = Int64.min
    /// The last operation of each client that was placed.
    private var lastOfClient: [Int: Int] = [:]
    /// Every operation before this one was placed.
    private var first = 0

    private var seen: Set<Configuration> = []
    private var longest: [Int] = []
    private var longestState = KeyState()

    private struct Configuration: Hashable {
        let placed: [UInt64]
        let state: KeyState
    }

    /// A placed operation, and what placing it changed.
    private struct Placed {
        let index: Int
        let state: KeyState
        let latestInvocation: Int64
        let lastOfClient: Int?
        let first: Int
        /// What else could have been placed in its stead and was not tried.
        var others: ArraySlice<Int>
    }

    init(_ operations: [Operation]) {
        self.operations = operations
        placed = [UInt64](repeating: 0, count: operations.count / 64 + 1)
        mandatoryLeft = operations.count { !$0.isOptional }
    }

    mutating func run(limit: Int) -> Verdict {
        var choices = candidates()[...]
        while mandatoryLeft > 0 {
            if let index = choices.popFirst() {
                guard let next = state.after(operations[index]) else { continue }
                place(index, next, others: choices)
                if seen.insert(Configuration(placed: placed, state: state)).inserted {
                    guard seen.count <= limit else { return .undecided(refutation) }
                    choices = candidates()[...]
                } else {
                    choices = takeBack()
                }
            } else if path.isEmpty {
                return .refuted(refutation)
            } else {
                choices = takeBack()
            }
        }
        let order = path.map { operations[$0.index] }
        return .linearizable(.init(operations: order, configurationCount: seen.count))
    }

    private var refutation: Refutation {
        Refutation(
            operations: operations,
            configurationCount: seen.count,
            longest: longest,
            state: longestState
        )
    }

    private func isPlaced(_ index: Int) -> Bool { placed[index / 64] >> (index % 64) & 1 == 1 }

    /// The operations that may come next; a single one where it changes nothing and rules nothing out.
    private func candidates() -> [Int] {
        var found: [Int] = []
        var earliestEnd = Int64.max
        var earliestOptionalEnd = Int64.max
        var clientsThatWait: Set<Int> = []
        var clientsWithOptional: Set<Int> = []
        for index in first..<operations.count where !isPlaced(index) {
            let operation = operations[index]
            if operation.invoked > earliestEnd { break }
            if operation.isOptional {
                let isRuledOut =
                    operation.ended < latestInvocation
                    || lastOfClient[operation.client].map { $0 > index } ?? false
                guard !isRuledOut else { continue }
                // Also one that still waits for its client could be ruled out.
                earliestOptionalEnd = min(earliestOptionalEnd, operation.ended)
                clientsWithOptional.insert(operation.client)
                if !clientsThatWait.contains(operation.client) { found.append(index) }
                continue
            }
            earliestEnd = min(earliestEnd, operation.ended)
            guard clientsThatWait.insert(operation.client).inserted else { continue }
            let rulesNothingOut =
                operation.invoked <= earliestOptionalEnd
                && !clientsWithOptional.contains(operation.client)
            if rulesNothingOut, state.after(operation) == state { return [index] }
            found.append(index)
        }
        return found
    }

    private mutating func place(_ index: Int, _ next: KeyState, others: ArraySlice<Int>) {
        let operation = operations[index]
        path.append(
            Placed(
                index: index,
                state: state,
                latestInvocation: latestInvocation,
                lastOfClient: lastOfClient[operation.client],
                first: first,
                others: others
            )
        )
        placed[index / 64] |= 1 << (index % 64)
        state = next
        latestInvocation = max(latestInvocation, operation.invoked)
        lastOfClient[operation.client] = index
        if !operation.isOptional { mandatoryLeft -= 1 }
        while first < operations.count, isPlaced(first) { first += 1 }
        guard path.count > longest.count else { return }
        longest = path.map(\.index)
        longestState = state
    }

    /// Takes the last operation back.
    ///
    /// - Returns: What else may stand in its place.
    private mutating func takeBack() -> ArraySlice<Int> {
        let last = path.removeLast()
        let operation = operations[last.index]
        placed[last.index / 64] &= ~(1 << (last.index % 64))
        state = last.state
        latestInvocation = last.latestInvocation
        lastOfClient[operation.client] = last.lastOfClient
        first = last.first
        if !operation.isOptional { mandatoryLeft += 1 }
        return last.others
    }
}
