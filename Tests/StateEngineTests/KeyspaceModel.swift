/// What a keyspace must hold, in plain dictionaries: one whole state for each transaction in flight.
struct KeyspaceModel {
    struct Entry: Hashable {
        var value: String
        var revision: Int64
        var created: Int64
        var version: Int64
        var owner: UInt32
        var writer: UInt32
        var time: Int64
    }

    struct State {
        var entries: [String: Entry] = [:]
        /// The last commit that set or deleted the key.
        var touched: [String: Int64] = [:]
    }

    private(set) var durable = State()
    private(set) var durableRevision: Int64 = 0
    private(set) var newestRevision: Int64 = 0
    private(set) var flying: [(revision: Int64, state: State)] = []
    /// The state after each durable commit.
    private(set) var history: [Int64: [String: String]] = [0: [:]]

    var newest: State { flying.last?.state ?? durable }

    /// What a transaction does to one key.
    enum Step {
        case set(String)
        case append(String)
        case delete
    }

    /// The state after the steps, and whether they changed anything.
    private func run(
        _ steps: [(key: String, step: Step)],
        by uid: UInt32,
        at time: Int64
    ) -> (state: State, isChanged: Bool) {
        let base = newest
        let revision = newestRevision + 1
        var state = base
        for (key, step) in steps {
            let old = state.entries[key]
            let value: String? =
                switch step {
                case .set(let value): value
                case .append(let suffix): (old?.value ?? "") + suffix
                case .delete: nil
                }
            state.entries[key] = value.map {
                Entry(
                    value: $0,
                    revision: revision,
                    created: old?.created ?? revision,
                    version: (old?.version ?? 0) + 1,
                    owner: old?.owner ?? uid,
                    writer: uid,
                    time: time
                )
            }
        }
        var isChanged = false
        for key in Set(steps.map(\.key)) where state.entries[key] != base.entries[key] {
            state.touched[key] = revision
            isChanged = true
        }
        return (state, isChanged)
    }

    /// - Returns: The revision; 0 where nothing was changed.
    mutating func transact(
        _ steps: [(key: String, step: Step)],
        by uid: UInt32,
        at time: Int64
    ) -> Int64 {
        let (state, isChanged) = run(steps, by: uid, at: time)
        guard isChanged else { return 0 }
        newestRevision += 1
        flying.append((newestRevision, state))
        return newestRevision
    }

    /// Everything up to `revision` is on stable storage.
    mutating func settle(through revision: Int64) {
        while let first = flying.first, first.revision <= revision {
            durable = first.state
            durableRevision = first.revision
            history[durableRevision] = durable.entries.mapValues(\.value)
            flying.removeFirst()
        }
    }

    /// What is in flight was not committed.
    mutating func fail() { flying = [] }

    /// What reading `key` looks at.
    func observed(reading key: String) -> Int64 {
        let touched = newest.touched[key] ?? 0
        return touched > durableRevision ? touched : 0
    }
}
