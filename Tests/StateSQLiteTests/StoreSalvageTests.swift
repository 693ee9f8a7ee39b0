import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// What is whole of a damaged settled store is there afterwards, and what is not is named.
struct StoreSalvageTests {
    private let stage: SettledStage
    private var target: String { stage.directory.path(of: "new") }

    init() throws { stage = try SettledStage() }

    @Test(arguments: [true, false])
    func `a store that is whole is copied whole with its past, as another store`(
        closes: Bool
    ) throws {
        try stage.fill(commitCount: 500, seed: Seed.base, closes: closes)
        let files = try stage.files()
        let (lines, summary) = try stage.salvage(to: target)
        #expect(lines == [])
        #expect(summary.isWhole && summary.hasAllRows && summary.lostRowCount == 0)
        #expect(try stage.files() == files)
        #expect(names(in: target).sorted() == ["lock", "log", "stated.db"])
        let old = try LocalKeyspace(backing: SettledStage.backing(stage.data, .keep(changes: .max)))
        let new = try LocalKeyspace(backing: SettledStage.backing(target, .keep(changes: .max)))
        defer { new.close() }
        #expect(old.revision == stage.revision || !closes)
        let epochs = (old.withCore { $0.store.epoch }, new.withCore { $0.store.epoch })
        #expect(epochs.0 != epochs.1)
        #expect(new.revision == stage.revision + 1 << 32 && summary.revision == new.revision)
        #expect(new.values == stage.values && summary.entryCount == stage.values.count)
        // A copy of an unclosed store begins a new epoch without a past when it is opened elsewhere.
        if closes {
            let floor = old.withCore { $0.revisions.compacted }
            #expect(floor < stage.revision - 50)
            #expect(try StoredPast(of: old, from: floor) == StoredPast(of: new, from: floor))
        } else {
            let floor = new.withCore { $0.revisions.compacted }
            let past = try StoredPast(of: new, from: floor)
            #expect(past.changes.count > 100 && past.states[stage.revision] == stage.values)
        }
        old.close()
        // It takes writes.
        try new.apply([.set("more", [1])])
    }

    /// Bits of each kind of file; what is lost is said.
    @Test(arguments: ["stated.db", "log"], Seed.each(3))
    func `never an older state silently: a flipped bit costs little, and what it costs is named`(
        kind: String,
        seed: UInt64
    ) throws {
        try stage.fill(commitCount: 300, seed: seed, closes: seed % 2 == 0)
        let names = try stage.files().keys.filter { $0.hasPrefix(kind) }.sorted()
        var random = SplitMix(seed: seed &+ 9)
        var foundCount = 0
        let count = Extent.rounds(Extent.named("STATED_FLIPS", short: 12))
        for number in 0..<count {
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            let path = stage.data + "/" + name
            let whole = try readFile(path)
            guard !whole.isEmpty else { continue }
            // Zeros behind the end of a segment are of no interest.
            let end = max(1, (whole.lastIndex { $0 != 0 } ?? 0) + 1)
            let place = Int.random(in: 0..<end, using: &random)
            var bytes = whole
            bytes[place] ^= 1 << UInt8(random.next() % 8)
            try write(bytes, to: path)
            defer { try? write(whole, to: path) }
            let other = stage.directory.path(of: "new\(number)")
            let (lines, summary) = try stage.salvage(to: other)
            #expect(try readFile(path) == bytes)
            let found = try SettledStage.values(in: other)
            let wrong = Set(found.keys).union(stage.values.keys)
                .filter { found[$0] != stage.values[$0] }
            // A frame has up to eight keys, a page some forty rows.
            #expect(wrong.count <= (kind == "log" ? 8 : 60), "\(name), byte \(place): \(lines)")
            if !lines.isEmpty { foundCount += 1 }
            if !wrong.isEmpty, found != stage.earlierValues {
                #expect(!summary.isWhole && !lines.isEmpty, "\(name), byte \(place)")
                #expect(summary.lostRowCount > 0 || !summary.isCounted, "\(name), byte \(place)")
            }
            _ = try runCommand("rm", ["-r", other])
        }
        // After a kill the log has what SQLite's own log has, so that damage of that costs nothing.
        #expect(count < 100 || foundCount > 5 || kind != "log" && seed % 2 != 0)
    }

    @Test func `a damaged row is named by what it says, and by what is served instead`() throws {
        let backing = SettledStage.backing(stage.data, .none)
        let keyspace = try LocalKeyspace(backing: backing)
        try keyspace.apply([.set("audio/volume", Array("0.7".utf8))])
        try keyspace.apply([.set("audio/volume", Array("a value to find".utf8))])
        try keyspace.apply([.set("other", [1])])
        keyspace.close()
        // Without the log nothing else has the value.
        for segment in stage.segments { unlink(segment) }
        var bytes = try readFile(stage.database)
        let value = Array("a value to find".utf8)
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: value) })
        bytes[place] = 0x41
        try write(bytes, to: stage.database)
        let (lines, summary) = try stage.salvage(to: target)
        #expect(
            lines.contains(
                "damaged: the row of key 'audio/volume', apparently revision 2; no intact version of "
                    + "that key is left"
            ),
            "\(lines)"
        )
        #expect(lines.contains("the database had 2 rows, 1 are intact"))
        #expect(summary.lostRowCount == 1 && !summary.isWhole)
        #expect(try SettledStage.values(in: target) == ["other": [1]])
    }

    @Test func `a row that is damaged costs nothing if the log has it`() throws {
        let keyspace = try LocalKeyspace(backing: SettledStage.backing(stage.data))
        try keyspace.apply([.set("a", Array("a value to find".utf8))])
        try keyspace.apply([.set("b", [1])])
        keyspace.close()
        try Stranger(stage.database).run("UPDATE newest SET value=x'07' WHERE key='a'")
        let (lines, summary) = try stage.salvage(to: target)
        #expect(
            lines == [
                "damaged: the row of key 'a', apparently revision 1; the newest intact version of that key has revision 1"
            ]
        )
        #expect(summary.hasAllRows && summary.lostRowCount == 0)
        #expect(
            try SettledStage.values(in: target) == ["a": Array("a value to find".utf8), "b": [1]]
        )
    }

    @Test(arguments: [0..<100, 0..<pageByteCount])
    func `a first page that is gone costs nothing`(range: Range<Int>) throws {
        try stage.fill(commitCount: 300, seed: 4, closes: true)
        var bytes = try readFile(stage.database)
        for index in range { bytes[index] = 0 }
        try write(bytes, to: stage.database)
        let (lines, summary) = try stage.salvage(to: target)
        #expect(summary.isWhole && summary.lostRowCount == 0, "\(lines)")
        #expect(lines.count == 1 && lines[0].contains("the first page of"), "\(lines)")
        #expect(try SettledStage.values(in: target) == stage.values)
    }

    /// Without the log, which has the newest values.
    @Test func `pages that are gone cost their own rows, and the keys around them are named`()
        throws
    {
        try stage.fill(commitCount: 900, seed: 5, keyCount: 2_000, history: .none, closes: true)
        for segment in stage.segments { unlink(segment) }
        let rows = try Stranger(stage.database).run(
            "SELECT pageno FROM dbstat WHERE name='newest' AND pagetype='leaf' ORDER BY path"
        )
        try #require(rows.count > 12)
        var bytes = try readFile(stage.database)
        for index in [rows.count / 4, rows.count * 3 / 4] {
            let page = try #require(rows[index][0].flatMap { Int($0) }) - 1
            bytes.replaceSubrange(
                page * pageByteCount..<(page + 1) * pageByteCount,
                with: [UInt8](repeating: 0, count: pageByteCount)
            )
        }
        try write(bytes, to: stage.database)
        let (lines, summary) = try stage.salvage(to: target)
        let found = try SettledStage.values(in: target)
        let lost = stage.values.keys.filter { found[$0] == nil }.sorted()
        #expect((2...200).contains(lost.count) && found.count + lost.count == stage.values.count)
        #expect(summary.lostRowCount == Int64(lost.count) && !summary.isWhole, "\(lines)")
        // Whatever is between the two was read, and each gap names the keys beside it.
        let gaps = lines.filter { $0.hasPrefix("rows after key ") }
        #expect(gaps.count == 2, "\(lines)")
    }

    /// A program of that name, which says what a build that can do it does.
    @Test func `what sqlite3 recovers is taken, and stale rows of it are not`() throws {
        let backing = SettledStage.backing(stage.data, .none)
        let keyspace = try LocalKeyspace(backing: backing)
        for number in 0..<300 {
            try keyspace.apply([.set(Key("k/\(1000 + number)"), Array("value \(number)".utf8))])
        }
        keyspace.close()
        for segment in stage.segments { unlink(segment) }
        // Its rows as they are, some without a table.
        let quoted = [
            "key", "value", "revision", "ordinal", "created", "owner", "version", "time", "expires",
            "cause", "checksum",
        ]
        .map { "quote(\($0))" }.joined(separator: " || ', ' || ")
        let orphans = try Stranger(stage.database)
            .run(
                "SELECT 'INSERT INTO lost_and_found VALUES(2, 9, 11, NULL, ' || \(quoted) || ');' FROM newest"
            )
            .map { $0[0] ?? "" }
        let columns = (0..<11).map { "c\($0)" }.joined(separator: ", ")
        let sql =
            "CREATE TABLE lost_and_found(rootpgno, pgno, nfield, id, \(columns));\n"
            + orphans.joined(separator: "\n") + "\n"
        let tools = stage.directory.path(of: "tools")
        mkdir(tools, 0o700)
        try stage.directory.write(sql, to: "recovered.sql")
        try stage.directory.write(
            """
            #!/bin/sh
            case "$*" in
            *".recover "*) exec cat '\(stage.directory.path(of: "recovered.sql"))' ;;
            *) exec python3 -c 'import sqlite3, sys
            sqlite3.connect(sys.argv[2]).executescript(sys.stdin.read())' "$@" ;;
            esac
            """,
            to: "tools/sqlite3"
        )
        chmod(tools + "/sqlite3", 0o700)
        let rows = try Stranger(stage.database).run(
            "SELECT pageno FROM dbstat WHERE name='newest' AND pagetype='leaf' ORDER BY path"
        )
        let page = try #require(rows[rows.count / 2][0].flatMap { Int($0) }) - 1
        var bytes = try readFile(stage.database)
        for index in page * pageByteCount..<(page + 1) * pageByteCount { bytes[index] = 0 }
        try write(bytes, to: stage.database)
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        let result = try runCommand(
            builtProgram("stated"),
            ["--salvage", "--data", stage.data, "--to", target],
            environment: ["PATH": "\(tools):\(path)"]
        )
        #expect(result.text.contains("rows 300, entries 300"), "\(result)")
        let expected = Dictionary(
            uniqueKeysWithValues: (0..<300).map { ("k/\(1000 + $0)", Array("value \($0)".utf8)) }
        )
        #expect(try SettledStage.values(in: target) == expected)
    }

    @Test(arguments: [0, 1, 2])
    func `a segment that is missing is said to be, and what is behind it is there`(
        position: Int
    ) throws {
        try stage.fill(
            commitCount: 400,
            seed: 6,
            history: .keep(changes: 1_000_000),
            closes: false
        )
        let segments = stage.segments
        try #require(segments.count > 3)
        let index = [0, segments.count / 2, segments.count - 1][position]
        unlink(segments[index])
        let (lines, summary) = try stage.salvage(to: target)
        let found = try SettledStage.values(in: target)
        let wrong = Set(found.keys).union(stage.values.keys).filter {
            found[$0] != stage.values[$0]
        }
        if position == 0 {
            // The rows have what it had.
            #expect(wrong.isEmpty)
        } else {
            #expect(lines.contains { $0.hasPrefix("lost: ") && $0.contains("missing") }, "\(lines)")
            #expect(!summary.isWhole)
        }
        if position == 2 { #expect(!wrong.isEmpty && wrong.count < 120) }
    }

    @Test func `a missing log is said to be, and the database gives what it has`() throws {
        try stage.fill(commitCount: 200, seed: 7, closes: false)
        _ = try runCommand("rm", ["-r", stage.log])
        let (lines, summary) = try stage.salvage(to: target)
        #expect(lines.contains { $0.hasPrefix("lost: the log, ") }, "\(lines)")
        #expect(!summary.isWhole && !summary.isCounted)
        let found = try SettledStage.values(in: target)
        let rows = try Stranger(stage.database).run(
            "SELECT count(*) FROM newest WHERE value IS NOT NULL"
        )
        #expect(rows[0][0] == "\(found.count)")
        let new = try LocalKeyspace(backing: SettledStage.backing(target))
        defer { new.close() }
        // Nobody is told of a past that may have holes.
        let history = try #require(try new.history?.openHistory())
        #expect(try history.snapshot { $0 } > 100)
    }

    @Test func `a missing database costs nothing if the log has everything there ever was`() throws
    {
        try stage.fill(
            commitCount: 200,
            seed: 8,
            history: .keep(changes: 1_000_000),
            closes: false
        )
        for name in ["", "-wal", "-shm"] { unlink(stage.database + name) }
        let (lines, summary) = try stage.salvage(to: target)
        #expect(lines.count == 1 && lines[0].contains("is missing; the log has all"), "\(lines)")
        #expect(summary.isWhole)
        #expect(try SettledStage.values(in: target) == stage.values)
    }

    @Test func `a missing database whose log begins later is a loss, and said to be`() throws {
        try stage.fill(commitCount: 600, seed: 9, closes: false)
        for name in ["", "-wal", "-shm"] { unlink(stage.database + name) }
        let (lines, summary) = try stage.salvage(to: target)
        #expect(lines.contains { $0.contains("stated.db is missing: values that") }, "\(lines)")
        #expect(!summary.isWhole && !summary.isCounted)
        let found = try SettledStage.values(in: target)
        #expect(found.count > 50)
        for (key, value) in found { #expect(stage.values[key] == value) }
    }

    @Test func `a database of yesterday beside the log of today is said to be`() throws {
        try stage.fill(commitCount: 50, seed: 4, closes: true)
        let old = try readFile(stage.database)
        for _ in 0..<2 { _ = try SettledStage.values(in: stage.data) }
        try write(old, to: stage.database)
        let (lines, summary) = try stage.salvage(to: target)
        #expect(lines.contains { $0.contains("are of different times") }, "\(lines)")
        #expect(!summary.isWhole)
        #expect(try SettledStage.values(in: target) == stage.values)
    }

    @Test func `a directory with a store in it is refused and left as it is`() throws {
        try stage.fill(commitCount: 5, seed: 6, closes: true)
        let files = try stage.files()
        let error = #expect(throws: StateError.self) { try stage.salvage(to: stage.data) }
        #expect(error?.message.contains("there is a store in") == true)
        #expect(try stage.files() == files)
    }

    @Test func `a store that a process owns is refused with its pid`() throws {
        let backing = SettledStage.backing(stage.data)
        _ = try backing.load { _ in }
        let error = #expect(throws: StateError.self) { try stage.salvage(to: target) }
        #expect(error?.code == .locked && error?.message.contains("process \(getpid())") == true)
        #expect(access(target, F_OK) != 0)
        backing.close()
    }

    @Test func `what holds nothing of a store is refused, and nothing is left`() throws {
        try write([UInt8](repeating: 0x5A, count: 100_000), to: stage.database)
        let error = #expect(throws: StateError.self) { try stage.salvage(to: target) }
        #expect(error?.code == .corrupt, "\(error as Any)")
        #expect(access(target, F_OK) != 0)
    }

    @Test func `stated --check and --salvage know a settled store by itself`() throws {
        try stage.fill(commitCount: 40, seed: 1, closes: true)
        let stated = builtProgram("stated")
        let check = try runCommand(stated, ["--check", "--data", stage.data])
        #expect(check.exitCode == 0 && check.text.hasSuffix("nothing is wrong\n"), "\(check)")
        let salvage = try runCommand(stated, ["--salvage", "--data", stage.data, "--to", target])
        #expect(
            salvage.exitCode == 0 && salvage.text.contains("every row was intact"),
            "\(salvage)"
        )
        #expect(try SettledStage.values(in: target) == stage.values)
    }
}
