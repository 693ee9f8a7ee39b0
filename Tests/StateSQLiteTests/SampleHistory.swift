import CSQLite
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport

extension TemporaryStore {
    /// Commits a history of a keyspace: values of all sizes, overwritten and deleted, transactions of one change and of
    /// many; and stops cleanly.
    func fillWithHistory(commitCount: Int, seed: UInt64) throws {
        let keyspace = try LocalKeyspace(backing: backing())
        defer { keyspace.close() }
        try Self.apply(commitCount: commitCount, seed: seed, to: keyspace)
    }

    /// The same without the clean stop, as after a crash.
    func crashAfterHistory(commitCount: Int, seed: UInt64) throws {
        let original = try TemporaryStore()
        let keyspace = try LocalKeyspace(backing: original.backing())
        try Self.apply(commitCount: commitCount, seed: seed, to: keyspace)
        try original.copy(to: self)
        keyspace.close()
    }

    private static func apply(
        commitCount: Int,
        seed: UInt64,
        to keyspace: LocalKeyspace
    ) throws {
        var numbers = SplitMix(seed: seed)
        for _ in 0..<commitCount {
            let count = numbers.chance(20) ? Int.random(in: 2...40, using: &numbers) : 1
            try keyspace.apply(
                try (0..<count).map { _ in
                    let number = Int.random(in: 0..<300, using: &numbers)
                    let key = try Key(
                        "test/\(number)" + String(repeating: "k", count: number % 40)
                    )
                    if numbers.chance(15) { return .delete(key) }
                    let size = numbers.chance(1) ? 60_000 : numbers.chance(4) ? 6_000 : 150
                    return .set(key, numbers.bytes(Int.random(in: 0...size, using: &numbers)))
                }
            )
        }
    }

    /// Leaves pages in the file that nothing uses, with old bytes in them.
    func addFreePages() throws {
        let stranger = try Stranger(database)
        try stranger.run("PRAGMA secure_delete=OFF")
        try stranger.run("CREATE TABLE other(a INTEGER PRIMARY KEY, b)")
        try stranger.run(
            """
            INSERT INTO other SELECT * FROM (WITH RECURSIVE n(i) AS
            (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) SELECT i, randomblob(300) FROM n)
            """
        )
        try stranger.run("DROP TABLE other")
    }

    /// The names and bytes of all files, but for the index of the log.
    func files() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in names(in: directory) where !name.hasSuffix("-shm") {
            files[name] = try readFile(directory + "/" + name)
        }
        return files
    }

    /// What a check reports, and its summary.
    func check() throws -> (findings: [String], summary: StoreCheck.Summary) {
        var findings: [String] = []
        let summary = try StoreCheck(store: directory) { findings.append($0) }.run()
        return (findings, summary)
    }

    /// Copies what is whole into `target`; what is reported of the rest, and the summary.
    func salvage(
        to target: TemporaryStore
    ) throws -> (lines: [String], summary: StoreSalvage.Summary) {
        var lines: [String] = []
        let salvage = StoreSalvage(store: directory, target: target.directory) { lines.append($0) }
        let summary = try salvage.run()
        return (lines, summary)
    }
}

/// What the pages of a database are, as SQLite says.
struct PageTable {
    /// Pages from which no row can be lost: of other tables, interior or unused.
    private(set) var others: [Int] = [1]
    /// Leaves of the history.
    private(set) var leaves: [Int] = []
    /// Interior pages of the history.
    private(set) var interiors: [Int] = []

    init(_ path: String, pageCount: Int) throws {
        let rows = try Stranger(path).run("SELECT pageno, name, pagetype FROM dbstat")
        var history: Set<Int> = []
        for row in rows {
            guard let number = row[0].flatMap({ Int($0) }), row[1] == "history" else { continue }
            history.insert(number)
            if row[2] == "leaf" { leaves.append(number) }
            if row[2] == "internal" { interiors.append(number) }
        }
        others += interiors + (2...pageCount).filter { !history.contains($0) }
    }
}
