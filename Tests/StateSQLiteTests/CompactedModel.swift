import StateEngine
import StateSQLite
import StateTestSupport

/// A keyspace on a store, and beside it a dictionary at each revision: what was, in full.
final class CompactedModel {
    typealias State = [String: [UInt8]]

    struct Change: Hashable {
        var revision: Int64
        var key: String
        var value: [UInt8]?
    }

    private(set) var keyspace: LocalKeyspace
    private let backing: () -> any Backing
    /// Whether the store itself may drop more than it was asked to.
    private let dropsMore: Bool
    private var random: SplitMix
    private let keyCount: Int
    /// Every change that was ever committed, in order.
    private(set) var changes: [Change] = []
    /// The newest state.
    private(set) var state: State = [:]
    /// From here on all of it is expected to be readable.
    private(set) var compacted: Int64 = 0

    init(
        seed: UInt64,
        keyCount: Int,
        dropsMore: Bool = false,
        _ backing: @escaping () -> any Backing
    ) throws {
        random = SplitMix(seed: seed)
        self.dropsMore = dropsMore
        self.keyCount = keyCount
        self.backing = backing
        keyspace = try LocalKeyspace(backing: backing())
    }

    deinit { keyspace.close() }

    /// One transaction, of one change or of some.
    func commit() throws {
        let count = random.chance(20) ? Int.random(in: 2...12, using: &random) : 1
        var mutations: [Mutation] = []
        var after = state
        var touched: Set<String> = []
        for _ in 0..<count {
            let key = "k/\(Int.random(in: 0..<keyCount, using: &random))"
            guard touched.insert(key).inserted else { continue }
            if random.chance(35) {
                mutations.append(.delete(try Key(key)))
                after[key] = nil
            } else {
                let size = random.chance(2) ? 20_000 : 40
                let value = random.bytes(Int.random(in: 0...size, using: &random))
                mutations.append(.set(try Key(key), value))
                after[key] = value
            }
        }
        let revision = try keyspace.apply(mutations)
        for key in touched where after[key] != nil || state[key] != nil {
            changes.append(Change(revision: revision, key: key, value: after[key]))
        }
        state = after
    }

    /// Compacts to a revision that is not below the last.
    func compact() throws {
        let revision = Int64.random(in: compacted...keyspace.revision, using: &random)
        try compact(to: revision)
    }

    func compact(to revision: Int64) throws {
        let reply = try keyspace.compact(to: revision)
        compacted = max(compacted, revision)
        if dropsMore { compacted = max(compacted, reply.compacted) }
        guard reply.compacted == compacted else {
            throw TestFailure("compacted to \(reply.compacted), asked for \(compacted)")
        }
    }

    /// Closes, calls `body` and opens.
    func restart(_ body: () throws -> Void = {}) throws {
        keyspace.close()
        try body()
        keyspace = try LocalKeyspace(backing: backing())
    }

    /// The keys whose value is not the newest one.
    func differences() -> [String] {
        var found: State = [:]
        for (key, entry) in keyspace.entries("/", after: nil, limit: .max) {
            found[key.description] = entry.value
        }
        return Set(found.keys).union(state.keys).filter { found[$0] != state[$0] }.sorted()
    }

    /// What is wrong with what can be read, a sentence each.
    func faults() throws -> [String] {
        guard let history = try keyspace.history?.openHistory() else { return ["no history"] }
        // Order matters: what memory forgets, no later snapshot has.
        let newest = newestChanges()
        return try history.snapshot { compacted in
            var faults: [String] = []
            if dropsMore { self.compacted = max(compacted, self.compacted) }
            if compacted != self.compacted {
                faults.append("the history says \(compacted), not \(self.compacted)")
            }
            let told = keyspace.withCore { $0.revisions.compacted }
            if dropsMore ? told > compacted : told != compacted {
                faults.append("the keyspace says \(told), not \(compacted)")
            }
            return try faults + changeFaults(history) + stateFaults(history)
                + keyFaults(history, newest)
        }
    }

    private func newestChanges() -> [String: PastChange] {
        var newest: [String: PastChange] = [:]
        keyspace.withCore { core in
            for number in 0..<keyCount {
                let key = "k/\(number)"
                newest[key] = Array(key.utf8).withUnsafeBytes { core.newestChange(of: $0) }
            }
        }
        return newest
    }

    /// `GET AT` and `HISTORY` of some keys, also of deleted ones: a walk back from what memory knows.
    private func keyFaults(
        _ history: any HistoryReading,
        _ newestChanges: [String: PastChange]
    ) throws -> [String] {
        var faults: [String] = []
        for number in 0..<min(keyCount, 12) {
            let key = "k/\(number)"
            let bytes = Array(key.utf8)
            let newest = newestChanges[key]
            var found: [Change] = []
            var (next, successor) = (newest?.place, nil as HistoryPlace?)
            while let place = next {
                next = nil
                _ = try history.withChange(
                    at: place,
                    of: bytes,
                    newest: newest,
                    supersededBy: successor
                ) { change in
                    found.append(Change(change))
                    next = change.previousPlace
                }
                successor = place
            }
            let all = Array(changes.filter { $0.key == key }.reversed())
            // What the state at the compacted revision was, and everything since.
            let needed = all.filter { $0.revision > compacted }.count
            let isKnownBefore = all.count > needed && all[needed].value != nil
            let whole = isKnownBefore ? needed + 1 : needed
            if found.count < whole || found != Array(all.prefix(found.count)) {
                faults.append("\(key): \(found.count) versions, not \(whole) of \(all.count)")
            }
        }
        return faults
    }

    /// `FROM r`, for every r from the compacted revision on.
    private func changeFaults(_ history: any HistoryReading) throws -> [String] {
        var faults: [String] = []
        for revision in compacted...keyspace.revision {
            var found: Set<Change> = []
            let isWhole = try history.forEachChange(
                after: .end(of: revision),
                through: keyspace.revision
            ) { change in
                found.insert(Change(change))
                return true
            }
            let expected = Set(changes.filter { $0.revision > revision })
            if !isWhole || found != expected {
                faults.append("from \(revision): \(found.count) changes, not \(expected.count)")
            }
        }
        return faults
    }

    /// `AT r`, for every r from the compacted revision on: the newest state with what came later taken back.
    private func stateFaults(_ history: any HistoryReading) throws -> [String] {
        var faults: [String] = []
        var found = state
        var expected = state
        var rest = changes
        var later: [(place: HistoryPlace, key: String, previous: HistoryPlace)] = []
        _ = try history.forEachChange(after: .end(of: compacted), through: .max) { change in
            later.append(
                (
                    HistoryPlace(revision: change.revision, ordinal: change.ordinal),
                    change.key.text,
                    HistoryPlace(
                        revision: change.previousRevision,
                        ordinal: change.previousOrdinal
                    )
                )
            )
            return true
        }
        for revision in (compacted..<max(compacted, keyspace.revision)).reversed() {
            while let change = later.last, change.place.revision > revision {
                later.removeLast()
                var value: [UInt8]?
                if change.previous.revision > 0 {
                    _ = try history.withChange(
                        at: change.previous,
                        supersededBy: change.place
                    ) { old in
                        value = old.value.map { Array($0) }
                    }
                }
                found[change.key] = value
            }
            while let change = rest.last, change.revision > revision {
                rest.removeLast()
                expected[change.key] = rest.last { $0.key == change.key }?.value
            }
            if found != expected { faults.append("at \(revision): another state") }
        }
        return faults
    }
}

extension CompactedModel.Change {
    init(_ change: borrowing StoredChange) {
        self.init(
            revision: change.revision,
            key: change.key.text,
            value: change.value.map { Array($0) }
        )
    }
}
