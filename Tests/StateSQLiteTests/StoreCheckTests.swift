import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// A check of a settled store finds what is wrong, and changes nothing.
struct StoreCheckTests {
    private let stage: SettledStage

    init() throws { stage = try SettledStage() }

    @Test(arguments: [true, false])
    func `a store that is whole has nothing wrong, and not a byte is changed`(
        closes: Bool
    ) throws {
        try stage.fill(commitCount: 400, seed: Seed.base, closes: closes)
        let files = try stage.files()
        let (findings, summary) = try stage.check()
        #expect(findings == [] && summary.findingCount == 0)
        #expect(summary.entryCount == stage.values.count && summary.revision == stage.revision)
        #expect(summary.rowCount >= Int64(stage.values.count))
        #expect(try stage.files() == files)
        #expect(!names(in: stage.data).contains("stated.db-shm"))
    }

    @Test func `a store is checked beside its owner while that writes, settles and drops`() throws {
        let data = stage.data
        let backing = SettledStage.backing(data)
        let keyspace = try LocalKeyspace(backing: backing)
        let isEnding = Observed(false)
        let writer = WorkerThread(name: "writer")
        writer.start {
            var number = 0
            while !isEnding.update({ $0 }) {
                let value = [UInt8](repeating: UInt8(number % 250), count: 200)
                _ = try? keyspace.apply([.set(Key(verified: "k\(number % 37)"), value)])
                if number % 50 == 0 { try? backing.settle() }
                number += 1
            }
        }
        for _ in 0..<Extent.rounds(150) {
            let (findings, summary) = try stage.check()
            #expect(findings == [])
            #expect(summary.entryCount <= 37)
        }
        isEnding.update { $0 = true }
        writer.join()
        #expect(try stage.check().summary.revision == keyspace.revision)
        keyspace.close()
        #expect(try stage.check().findings == [])
    }

    @Test(arguments: [
        ("UPDATE newest SET value = x'00' WHERE key = 'b'", "the row of key 'b' does not match"),
        ("DELETE FROM newest WHERE key = 'b'", "2 rows; 3 were written"),
        ("UPDATE meta SET value = '7' WHERE name = 'life'", "'life' in meta does not match"),
        ("DELETE FROM meta WHERE name = 'settled byte'", "'settled byte' is missing in meta"),
        ("DROP VIEW entries", "entries is missing"),
        ("CREATE TABLE other(a)", "it has the table 'other', which stated has not made"),
    ])
    func `what was altered is found and named`(sql: String, finding: String) throws {
        let keyspace = try LocalKeyspace(backing: SettledStage.backing(stage.data))
        for key in ["a", "b", "c"] { try keyspace.apply([.set(Key(key), [1, 2])]) }
        keyspace.close()
        #expect(try stage.check().findings == [])
        try Stranger(stage.database).run(sql)
        let (findings, summary) = try stage.check()
        #expect(findings.contains { $0.contains(finding) }, "\(findings)")
        #expect(summary.findingCount == findings.count)
    }

    /// Each row is one that was written, and there are as many.
    @Test func `a row of yesterday in the database of today is found by the log`() throws {
        var keyspace = try LocalKeyspace(backing: SettledStage.backing(stage.data))
        try keyspace.apply([.set("a", [1])])
        try keyspace.apply([.set("b", [1])])
        keyspace.close()
        let columns = "value, revision, created, version, time, checksum"
        let old = try Stranger(stage.database).run(
            "SELECT quote(value), revision, created, version, time, checksum FROM newest WHERE key='a'"
        )[0].map { $0 ?? "NULL" }
        keyspace = try LocalKeyspace(backing: SettledStage.backing(stage.data))
        try keyspace.apply([.set("a", [2])])
        keyspace.close()
        try Stranger(stage.database).run(
            "UPDATE newest SET (\(columns)) = (\(old.joined(separator: ", "))) WHERE key='a'"
        )
        let findings = try stage.check().findings
        #expect(findings == ["the row of key 'a' has revision 1; the log has revision 3"])
    }

    /// A kill between the transactions of a settle leaves them.
    @Test
    func `never an older state: rows newer than the settled place fit the log that has them only`()
        throws
    {
        func copy(_ name: String, as other: String) throws {
            let (from, to) = (stage.directory.path(of: name), stage.directory.path(of: other))
            try #require(try runCommand("cp", ["-a", from, to]).exitCode == 0)
        }
        let backing = SettledStage.backing(stage.data)
        let keyspace = try LocalKeyspace(backing: backing)
        try keyspace.apply([.set("a", [1])])
        try backing.settle()
        try copy("data/log", as: "yesterday")
        let place = try Stranger(stage.database).run("SELECT name, value, checksum FROM meta")
        try keyspace.apply([.set("a", [2])])
        try keyspace.apply([.set("a", [3])])
        try backing.settle()
        try copy("data", as: "killed")
        keyspace.close()
        let killed = stage.directory.path(of: "killed")
        for row in place {
            let texts = row.map { "'\($0 ?? "")'" }.joined(separator: ", ")
            try Stranger(killed + "/stated.db").run("REPLACE INTO meta VALUES(\(texts))")
        }
        try copy("killed", as: "older")
        try copy("killed", as: "alone")
        let (older, alone) = (
            stage.directory.path(of: "older"), stage.directory.path(of: "alone")
        )
        for store in [older, alone] {
            try #require(try runCommand("rm", ["-r", store + "/log"]).exitCode == 0)
        }
        try copy("yesterday", as: "older/log")
        func check(_ store: String) throws -> [String] {
            var findings: [String] = []
            _ = try StoreCheck(store: store, report: { findings.append($0) }).run()
            return findings
        }
        func salvage(_ store: String) throws -> [String] {
            var lines: [String] = []
            _ = try StoreSalvage(store: store, target: store + "-new") { lines.append($0) }.run()
            #expect(try SettledStage.values(in: store + "-new") == ["a": [3]])
            return lines
        }
        #expect(try check(killed) == [] && salvage(killed).count == 0)
        #expect(try SettledStage.values(in: killed) == ["a": [3]])
        #expect(
            try check(older) == ["the row of key 'a' has revision 3, which the log has not"]
        )
        let error = #expect(throws: StateError.self) { try SettledStage.values(in: older) }
        #expect(error?.code == .corrupt && error?.message.contains("of different times") == true)
        let line =
            "lost: the database has revision 3, which the log has not: changes after revision 1 may be lost"
        let lines = try salvage(older)
        #expect(lines == [line])
        _ = try salvage(alone)
    }

    @Test func `a log or a database that is missing, or of another time, is named`() throws {
        try stage.fill(commitCount: 200, seed: 3, closes: false)
        let away = stage.directory.path(of: "away")
        try #require(rename(stage.log, away) == 0)
        #expect(
            try stage.check().findings.contains { $0.contains("is missing, and has the newest") }
        )
        try #require(rename(away, stage.log) == 0)
        try #require(rename(stage.database, away) == 0)
        let error = #expect(throws: StateError.self) { try stage.check() }
        #expect(error?.code == .corrupt && error?.message.contains("its log exists") == true)
        try #require(rename(away, stage.database) == 0)
        let segment = try #require(stage.segments.last)
        try #require(rename(segment, away) == 0)
        #expect(try !stage.check().findings.isEmpty)
        try #require(rename(away, segment) == 0)
        #expect(try stage.check().findings == [])
    }

    @Test func `a store of an older life beside a newer log is found`() throws {
        try stage.fill(commitCount: 50, seed: 4, closes: true)
        let old = try readFile(stage.database)
        for _ in 0..<2 { _ = try SettledStage.values(in: stage.data) }
        #expect(try stage.check().findings == [])
        try write(old, to: stage.database)
        let findings = try stage.check().findings
        #expect(findings == ["the database and the log are of different times"])
    }

    static let flipCount = Extent.rounds(Extent.named("STATED_FLIPS", short: 30))

    /// A start of a copy: it reads the same.
    @Test(arguments: [true, false], Seed.each(2))
    func
        `never silent about storage: a flipped bit is found, or a start serves what there was`(
            closes: Bool,
            seed: UInt64
        ) throws
    {
        try stage.fill(commitCount: 300, seed: seed, closes: closes)
        let names = try stage.files().keys.filter { $0 != "lock" }.sorted()
        var random = SplitMix(seed: seed)
        var (foundCount, servedCount) = (0, 0)
        for number in 0..<StoreCheckTests.flipCount {
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            let path = stage.data + "/" + name
            let whole = try readFile(path)
            guard !whole.isEmpty else { continue }
            var bytes = whole
            let place = Int.random(in: 0..<bytes.count, using: &random)
            bytes[place] ^= 1 << UInt8(random.next() % 8)
            try write(bytes, to: path)
            defer { try? write(whole, to: path) }
            let finding: String?
            do { finding = try stage.check().findings.first } catch let error as StateError {
                finding = error.message
            }
            let copy = stage.directory.path(of: "copy\(number)")
            try stage.copy(to: copy)
            do {
                let found = try SettledStage.values(in: copy)
                let isSame = found == stage.values || !closes && found == stage.earlierValues
                #expect(isSame, "\(name), byte \(place): another state, \(finding ?? "not found")")
                servedCount += 1
            } catch {
                #expect(finding != nil, "\(name), byte \(place): not found, but \(error)")
                foundCount += 1
            }
            _ = try runCommand("rm", ["-r", copy])
        }
        #expect(StoreCheckTests.flipCount < 100 || foundCount > 5 && servedCount > 5)
    }
}
