import Glibc
import StateEngine
import StateLog
import StateModel
import StateSQLite
import StateSalvage
import StateTestSupport

/// A settled store of a test's own, with small segments, and what is in it.
final class SettledStage {
    let directory: TemporaryDirectory
    /// What a start has to find.
    private(set) var values: [String: [UInt8]] = [:]
    /// The same before the last commit: if its frame is damaged, nothing proves that it was ever whole.
    private(set) var earlierValues: [String: [UInt8]] = [:]
    private(set) var revision: Int64 = 0

    var data: String { directory.path(of: "data") }
    var database: String { data + "/stated.db" }
    var log: String { data + "/log" }
    /// The files of the log that are segments, the oldest first.
    var segments: [String] {
        names(in: log).filter { $0.hasSuffix(".log") }.map { log + "/" + $0 }
            .filter { (try? number(of: $0)) ?? 0 > 0 }
            .sorted { (try? number(of: $0)) ?? 0 < (try? number(of: $1)) ?? 0 }
    }

    init() throws {
        directory = try TemporaryDirectory()
        mkdir(data, 0o700)
    }

    /// The number in the header of a segment.
    private func number(of path: String) throws -> Int {
        let bytes = try readFile(path)
        return (32..<40).reversed().reduce(0) { $0 << 8 | Int(bytes[$1]) }
    }

    static func backing(
        _ data: String,
        _ history: HistoryLimits = .keep(changes: 150)
    ) -> SQLiteBacking {
        var options = SQLiteBacking.Options()
        options.history = history
        options.log.segmentByteCount = 24 << 10
        options.log.largeSegmentByteCount = 48 << 10
        options.settling.sliceByteCount = 8 << 10
        options.settling.hasThread = false
        return SQLiteBacking(directory: data, options)
    }

    /// Commits, and settles now and then: values of all sizes are written over and deleted; it ends with a
    /// clean stop, or as if the process was killed.
    func fill(
        commitCount: Int,
        seed: UInt64,
        keyCount: Int = 300,
        history: HistoryLimits = .keep(changes: 150),
        closes: Bool
    ) throws {
        let open = closes ? data : directory.path(of: "open")
        mkdir(open, 0o700)
        let backing = SettledStage.backing(open, history)
        let keyspace = try LocalKeyspace(backing: backing)
        var random = SplitMix(seed: seed)
        for number in 1...commitCount {
            try commit(to: keyspace, &random, keyCount)
            if number % 60 == 0, number + 30 < commitCount || closes { try backing.settle() }
        }
        revision = keyspace.revision
        if !closes {
            for name in ["stated.db", "stated.db-wal"] {
                try write(try readFile(open + "/" + name), to: data + "/" + name)
            }
            mkdir(log, 0o700)
            for name in names(in: open + "/log") {
                try write(try readFile(open + "/log/" + name), to: log + "/" + name)
            }
        }
        keyspace.close()
    }

    private func commit(
        to keyspace: LocalKeyspace,
        _ random: inout SplitMix,
        _ keyCount: Int
    ) throws {
        let before = (values: values, revision: keyspace.revision)
        var mutations: [Mutation] = []
        var touched: Set<String> = []
        for _ in 0..<(random.chance(15) ? Int.random(in: 2...8, using: &random) : 1) {
            let number = Int.random(in: 0..<keyCount, using: &random)
            let key = "test/\(number)" + String(repeating: "k", count: number % 20)
            guard touched.insert(key).inserted else { continue }
            if random.chance(20) {
                mutations.append(.delete(try Key(key)))
                values[key] = nil
            } else {
                let size = random.chance(2) ? 6_000 : 120
                let value = random.bytes(Int.random(in: 0...size, using: &random))
                mutations.append(.set(try Key(key), value))
                values[key] = value
            }
        }
        // A delete of what is not there is no commit.
        if try keyspace.apply(mutations) != before.revision { earlierValues = before.values }
    }

    /// What a start of a store in a directory reads; the files are changed by it.
    static func values(in data: String) throws -> [String: [UInt8]] {
        let keyspace = try LocalKeyspace(backing: backing(data, .keep(changes: .max)))
        defer { keyspace.close() }
        return keyspace.values
    }

    func check() throws -> (findings: [String], summary: StoreCheck.Summary) {
        var findings: [String] = []
        let summary = try StoreCheck(store: data) { findings.append($0) }.run()
        return (findings, summary)
    }

    func salvage(
        to target: String
    ) throws -> (lines: [String], summary: StoreSalvage.Summary) {
        var lines: [String] = []
        let summary = try StoreSalvage(store: data, target: target) { lines.append($0) }.run()
        return (lines, summary)
    }

    /// The names and bytes of all files, but for the index of SQLite's log.
    func files() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in names(in: data) where name != "log" && !name.hasSuffix("-shm") {
            files[name] = try readFile(data + "/" + name)
        }
        for name in names(in: log) { files["log/" + name] = try readFile(log + "/" + name) }
        return files
    }

    /// Copies all files.
    func copy(to other: String) throws {
        mkdir(other, 0o700)
        mkdir(other + "/log", 0o700)
        for (name, bytes) in try files() where name != "lock" {
            try write(bytes, to: other + "/" + name)
        }
    }
}

extension LocalKeyspace {
    var values: [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        for (key, entry) in entries("/", after: nil, limit: .max) {
            found[key.description] = entry.value
        }
        return found
    }
}

/// Every change and every state of a store from a revision on.
struct StoredPast: Equatable {
    var changes: [BuiltBatch.Change] = []
    var states: [Int64: [String: [UInt8]]] = [:]

    /// Reads all of it; the floor must not be below that of the store.
    init(of keyspace: LocalKeyspace, from floor: Int64) throws {
        guard let history = try keyspace.history?.openHistory() else {
            throw TestFailure("there is no history")
        }
        var state = keyspace.values
        var found: [BuiltBatch.Change] = []
        var states: [Int64: [String: [UInt8]]] = [:]
        try history.snapshot { compacted in
            guard compacted <= floor else { throw TestFailure("it begins at \(compacted)") }
            _ = try history.forEachChange(after: .end(of: floor), through: .max) { change in
                found.append(BuiltBatch.Change(change))
                return true
            }
            for change in found.reversed() {
                states[change.revision] = states[change.revision] ?? state
                var value: [UInt8]?
                if change.previousRevision > 0 {
                    let place = HistoryPlace(
                        revision: change.previousRevision,
                        ordinal: change.previousOrdinal
                    )
                    let successor = HistoryPlace(
                        revision: change.revision,
                        ordinal: change.ordinal
                    )
                    _ = try history.withChange(at: place, supersededBy: successor) { older in
                        value = older.value.map { Array($0) }
                    }
                }
                state[String(decoding: change.key, as: UTF8.self)] = value
            }
            states[floor] = state
        }
        (changes, self.states) = (found, states)
    }
}
