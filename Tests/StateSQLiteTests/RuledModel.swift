import StateEngine
import StateSQLite
import StateTestSupport

/// A keyspace whose rules shorten the history, and beside it all that ever was.
final class RuledModel {
    struct Change: Hashable {
        var revision: Int64
        var key: String
        var value: [UInt8]?
        /// When it was made, in milliseconds of the model's clock.
        var time: Int64
    }

    /// The rules: a prefix for each way to shorten the history, and one that has none.
    static let kept: [String: KeyRetention] = [
        "none/": KeyRetention(changeCount: 0),
        "two/": KeyRetention(changeCount: 2),
        "aged/": KeyRetention(age: .seconds(3_600)),
        "both/": KeyRetention(changeCount: 3, age: .seconds(3_600)),
    ]
    static let prefixes = ["none/", "two/", "aged/", "both/", "free/"]

    private(set) var keyspace: LocalKeyspace
    private let backing: () -> any Backing
    private var random: SplitMix
    private(set) var changes: [Change] = []
    private(set) var state: [String: [UInt8]] = [:]
    let clock: Observed<Int64>

    /// Makes a model of a store whose clock is given to `backing`, in milliseconds.
    init(seed: UInt64, _ backing: @escaping (Observed<Int64>) -> any Backing) throws {
        let clock = Observed<Int64>(1_000_000)
        random = SplitMix(seed: seed)
        self.clock = clock
        self.backing = { backing(clock) }
        keyspace = try LocalKeyspace(backing: self.backing())
        try install(RuledModel.kept)
    }

    deinit { keyspace.close() }

    static func rules(_ kept: [String: KeyRetention]) throws -> KeyRules {
        let rules = try kept.map { (pattern: try Pattern($0.key), retention: $0.value) }
        return KeyRules(
            rules.map(\.pattern),
            memoryPatterns: [],
            retentions: rules.map(\.retention),
            usages: [],
            texts: NoTexts()
        ) { matching in
            var settings = KeyRule.Settings()
            settings.history = matching.last.map {
                KeyRule.Setting(value: rules[$0].retention, rule: RulePlace(index: $0))
            }
            return KeyRule(settings, quotas: [])
        }
    }

    private func install(_ kept: [String: KeyRetention]) throws {
        try keyspace.install(rules: RuledModel.rules(kept))
    }

    /// As a reload does.
    func exchange(_ kept: [String: KeyRetention]) throws {
        let rules = try RuledModel.rules(kept)
        keyspace.withCore { $0.replace(rules: kept.isEmpty ? nil : rules) }
    }

    func restart(_ kept: [String: KeyRetention] = RuledModel.kept) throws {
        keyspace.close()
        keyspace = try LocalKeyspace(backing: backing())
        try install(kept)
    }

    /// One transaction, of one change or of some, to few keys of each prefix.
    func commit() throws {
        var mutations: [Mutation] = []
        var after = state
        var touched: Set<String> = []
        for _ in 0..<(random.chance(20) ? Int.random(in: 2...8, using: &random) : 1) {
            let prefix = RuledModel.prefixes.randomElement(using: &random) ?? ""
            let key = "\(prefix)\(Int.random(in: 0..<5, using: &random))"
            guard touched.insert(key).inserted else { continue }
            if random.chance(20) {
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
        for key in touched.sorted() where after[key] != nil || state[key] != nil {
            changes.append(
                Change(revision: revision, key: key, value: after[key], time: clock.current)
            )
        }
        state = after
    }

    // MARK: What can be read

    /// The value of a key at a revision, as it was.
    private func value(of key: String, at revision: Int64) -> [UInt8]? {
        changes.last { $0.key == key && $0.revision <= revision }?.value
    }

    /// What is wrong with what can be read, a sentence each.
    func faults() throws -> [String] {
        var faults: [String] = []
        var found: [String: [UInt8]] = [:]
        for (key, entry) in keyspace.entries("/", after: nil, limit: .max) {
            found[key.description] = entry.value
        }
        if found != state { faults.append("the newest state is another") }
        guard let history = try keyspace.history?.openHistory() else { return ["no history"] }
        return try faults
            + history.snapshot { compacted in
                try changeFaults(history, compacted) + stateFaults(history, compacted)
            }
    }

    /// From the oldest revision of each prefix on, each commit has all of its changes.
    private func changeFaults(
        _ history: any HistoryReading,
        _ compacted: Int64
    ) throws -> [String] {
        var faults: [String] = []
        for prefix in RuledModel.prefixes + ["/"] {
            let pattern = try Pattern(prefix)
            let oldest = try history.oldestRevision(of: PatternSet([pattern]), compacted)
            var found: [String] = []
            _ = try history.forEachChange(after: .end(of: oldest), through: .max) { change in
                let key = change.key.text
                if prefix == "/" || key.hasPrefix(prefix) {
                    found.append("\(change.revision) \(key)")
                }
                return true
            }
            let expected = changes.filter {
                $0.revision > oldest && (prefix == "/" || $0.key.hasPrefix(prefix))
            }
            if Set(found) != Set(expected.map { "\($0.revision) \($0.key)" }) {
                faults.append("\(prefix) from \(oldest): \(found.count), not \(expected.count)")
            }
        }
        return faults
    }

    /// Each key at each revision: right, or refused below the oldest revision.
    private func stateFaults(
        _ history: any HistoryReading,
        _ compacted: Int64
    ) throws -> [String] {
        var faults: [String] = []
        for key in Set(changes.map(\.key)).sorted() {
            for revision in compacted...keyspace.revision {
                do {
                    let found = try past(key, revision, history)
                    if found != value(of: key, at: revision) {
                        faults.append("\(key) at \(revision) is another value")
                    }
                } catch let error as StateError where error.code == .compacted {
                    let oldest = try history.oldestRevision(
                        of: PatternSet([Pattern(Key(key))]),
                        compacted
                    )
                    if revision >= oldest { faults.append("\(key) at \(revision) is refused") }
                }
            }
        }
        return faults
    }

    /// As STATE.GET … AT finds it.
    private func past(
        _ key: String,
        _ revision: Int64,
        _ history: any HistoryReading
    ) throws -> [UInt8]? {
        let bytes = Array(key.utf8)
        let newest = keyspace.withCore { core in bytes.withUnsafeBytes { core.newestChange(of: $0) }
        }
        var (next, successor) = (newest?.place, nil as HistoryPlace?)
        var value: [UInt8]?
        while let place = next {
            next = nil
            let isThere = try history.withChange(
                at: place,
                of: bytes,
                newest: newest,
                supersededBy: successor
            ) { change in
                if change.revision <= revision {
                    value = change.value.map { Array($0) }
                } else {
                    next = change.previousPlace
                }
            }
            successor = place
            if !isThere { try history.requireWhole(bytes, at: revision) }
        }
        return value
    }

    // MARK: What is kept

    /// The revisions of each key that the history has, in order.
    func rows() throws -> [String: [Int64]] {
        guard let history = try keyspace.history?.openHistory() else { return [:] }
        return try history.snapshot { _ in try rows(history) }
    }

    private func rows(_ history: any HistoryReading) throws -> [String: [Int64]] {
        var rows: [String: [Int64]] = [:]
        _ = try history.forEachChange(after: .end(of: 0), through: .max) { change in
            rows[change.key.text, default: []].append(change.revision)
            return true
        }
        return rows
    }

    /// Versions that the rules and the retention keep and that are not there.
    func missing() throws -> [String] {
        guard let history = try keyspace.history?.openHistory() else { return ["no history"] }
        let (rows, compacted) = try history.snapshot { compacted in
            (try self.rows(history).mapValues { Set<Int64>($0) }, compacted)
        }
        var missing: [String] = []
        for (key, all) in Dictionary(grouping: changes, by: \.key) {
            let prefix = String(key.prefix { $0 != "/" }) + "/"
            let kept = RuledModel.kept[prefix] ?? KeyRetention()
            for (index, change) in all.enumerated() where index + 1 < all.count {
                let rank = all.count - 1 - index
                let age = (clock.current - all[index + 1].time) / 1_000
                // What is before that may only be carried by what supersedes it.
                guard change.revision > compacted,
                    kept.changeCount.map({ rank <= $0 }) ?? true,
                    kept.age.map({ .seconds(age) < $0 }) ?? true
                else { continue }
                if rows[key]?.contains(change.revision) != true {
                    missing.append("\(change.revision) \(key)")
                }
            }
        }
        return missing.sorted()
    }
}
