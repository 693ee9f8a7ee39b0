import StateEngine
import StateTestSupport
import StateTesting

/// A keyspace in memory that may be wrong in one way.
final class FaultyKeyspace: Keyspace {
    /// A way to be wrong.
    enum Fault: CaseIterable {
        case repeatsCommits, splitsCommits, losesCommits, swapsCommits, tellsNoState
        case answersFirst, ignoresConditions, appliesHalf, listsBackwards, repeatsTheBound
        case takesEmptyForAbsent, neverExcludes, excludesAtOnce, neverCancels, tellsEveryone
        case forgetsVersions, deletesNothing

        /// The rule that finds it.
        var rule: KeyspaceContract.Rule {
            switch self {
            case .repeatsCommits, .losesCommits: .keepsOneOrder
            case .swapsCommits: .converges
            case .splitsCommits: .neverSplits
            case .tellsNoState: .deliversTheState
            case .answersFirst: .deliversBeforeItAnswers
            case .ignoresConditions: .checksConditions
            case .appliesHalf: .appliesAllOrNone
            case .listsBackwards, .repeatsTheBound: .listsInOrder
            case .takesEmptyForAbsent: .takesTheBounds
            case .neverExcludes, .excludesAtOnce, .neverCancels: .followsWhatIsIncluded
            case .tellsEveryone: .deliversToEachWatch
            case .forgetsVersions, .deletesNothing: .isADictionary
            }
        }
    }

    let fault: Fault?
    private let keyspace: LocalKeyspace
    /// What is told after the answers, where it should be before.
    private let late = Observed<[@Sendable () -> Void]>([])

    init(_ fault: Fault?) throws {
        self.fault = fault
        keyspace = try LocalKeyspace(backing: MemoryBacking())
    }

    func close() { keyspace.close() }

    var epoch: Epoch { keyspace.epoch }

    func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        switch fault {
        case .ignoresConditions:
            return keyspace.submit(mutations.map(\.unconditional), completion: completion)
        case .deletesNothing:
            let rest = mutations.filter { if case .delete = $0 { false } else { true } }
            return keyspace.submit(rest, completion: completion)
        case .appliesHalf:
            return keyspace.submit(mutations) { [keyspace] result in
                if case .failure = result {
                    for mutation in mutations { keyspace.submit([mutation]) { _ in } }
                }
                completion(result)
            }
        case .answersFirst:
            return keyspace.submit(mutations) { [late] result in
                completion(result)
                let events = late.update { late in
                    defer { late = [] }
                    return late
                }
                for event in events { event() }
            }
        default: return keyspace.submit(mutations, completion: completion)
        }
    }

    func entry(for key: Key) -> Entry? {
        let entry = keyspace.entry(for: key)
        return fault == .takesEmptyForAbsent && entry?.value == [] ? nil : entry
    }

    func entries(_ pattern: Pattern, after key: Key?, limit: Int) -> [(key: Key, entry: Entry)] {
        var found = keyspace.entries(pattern, after: key, limit: limit)
        switch fault {
        case .listsBackwards: found.reverse()
        case .repeatsTheBound:
            if let key, let entry = keyspace.entry(for: key) {
                found = Array(([(key, entry)] + found).prefix(limit))
            }
        case .forgetsVersions: for index in found.indices { found[index].entry.version = 1 }
        default: break
        }
        return found
    }

    func watch(_ receive: @escaping @Sendable (KeyspaceEvent) -> Void) -> any KeyspaceWatch {
        let held = Observed<KeyspaceEvent?>(nil)
        let watch = keyspace.watch { [fault, late] event in
            if fault == .answersFirst, case .commit = event {
                late.update { $0.append { receive(event) } }
            } else {
                for event in Self.told(event, by: fault, held) { receive(event) }
            }
        }
        if fault == .tellsEveryone { watch.include([.everything]) }
        return FaultyWatch(watch, fault)
    }

    /// What becomes of an event.
    private static func told(
        _ event: KeyspaceEvent,
        by fault: Fault?,
        _ held: Observed<KeyspaceEvent?>
    ) -> [KeyspaceEvent] {
        switch (fault, event) {
        case (.repeatsCommits, .commit(let revision, _, _)) where revision.number % 7 == 0:
            return [event, event]
        case (.losesCommits, .commit(let revision, _, _)) where revision.number % 7 == 0:
            return []
        case (.splitsCommits, .commit(let revision, let changes, let cause)):
            return changes.map { .commit(revision, [$0], cause: cause) }
        case (.swapsCommits, .commit(let revision, _, _)) where revision.number % 7 == 0:
            held.update { $0 = event }
            return []
        case (.swapsCommits, .commit):
            let earlier = held.update { held in
                defer { held = nil }
                return held
            }
            return [event] + (earlier.map { [$0] } ?? [])
        case (.tellsNoState, .state(let revision, let patterns, _)):
            return [.state(revision, patterns: patterns, [])]
        case (.tellsEveryone, .state(_, patterns: [.everything], _)): return []
        default: return [event]
        }
    }
}

/// A watch of a ``FaultyKeyspace``.
private final class FaultyWatch: KeyspaceWatch {
    private let watch: any KeyspaceWatch
    private let fault: FaultyKeyspace.Fault?

    init(_ watch: any KeyspaceWatch, _ fault: FaultyKeyspace.Fault?) {
        self.watch = watch
        self.fault = fault
    }

    func include(_ patterns: [Pattern]) { watch.include(patterns) }

    func exclude(_ patterns: [Pattern]) {
        guard fault != .neverExcludes else { return }
        let count = fault == .excludesAtOnce ? 10 : 1
        for _ in 0..<count { watch.exclude(patterns) }
    }

    func cancel() { if fault != .neverCancels { watch.cancel() } }
}

extension Mutation {
    fileprivate var unconditional: Mutation {
        switch self {
        case .set(let key, let value, _, _): .set(key, value)
        case .delete(let key, _): .delete(key)
        case .check(let key, _): .check(key, revision: 0)
        }
    }
}
