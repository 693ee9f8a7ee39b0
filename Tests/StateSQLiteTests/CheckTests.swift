import CLinux
import Glibc
import StateEngine
import StateSQLite
import StateSalvage
import StateTestSupport
import Testing

/// A check finds what is wrong, and changes nothing.
struct CheckTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    @Test func `a store that is whole has nothing wrong`() throws {
        try store.fillWithHistory(commitCount: 200, seed: 1)
        let contents = try store.contents()
        let files = try store.files()
        let (findings, summary) = try store.check()
        #expect(findings == [])
        #expect(summary.findingCount == 0)
        #expect(summary.rowCount == Int64(contents.changes.count))
        #expect(summary.revision == contents.loaded.revision)
        let keyspace = try LocalKeyspace(backing: store.backing())
        #expect(summary.entryCount == keyspace.keyCount)
        keyspace.close()
        #expect(try store.files().keys.sorted() == files.keys.sorted())
    }

    @Test func `not a byte is changed, and no file is made`() throws {
        try store.fillWithHistory(commitCount: 20, seed: 2)
        let closed = try store.files()
        #expect(try store.check().findings == [])
        #expect(try store.files() == closed)
        #expect(names(in: store.directory).sorted() == ["lock", "stated.db", "stated.db-mark"])
        let killed = try TemporaryStore()
        try killed.crashAfterHistory(commitCount: 20, seed: 2)
        unlink(killed.database + "-shm")
        let files = try killed.files()
        let (findings, summary) = try killed.check()
        #expect(findings == [])
        #expect(try killed.files() == files)
        let kept = ["lock", "stated.db", "stated.db-mark", "stated.db-wal"]
        #expect(names(in: killed.directory).sorted() == kept)
        #expect(try Int64(killed.contents().changes.count) == summary.rowCount)
    }

    @Test func `a store is checked beside its owner while that writes`() throws {
        let keyspace = try LocalKeyspace(backing: store.backing())
        for number in 0..<50 {
            try keyspace.apply([.set(try Key("k\(number % 7)"), [UInt8(number)])])
            let (findings, summary) = try store.check()
            #expect(findings == [])
            #expect(summary.rowCount == Int64(number + 1))
        }
        keyspace.close()
        #expect(try store.check().findings == [])
    }

    @Test(arguments: [
        ("UPDATE history SET value = x'00' WHERE number = 8", "row 8 (revision 8, ordinal 0) does"),
        ("DELETE FROM history WHERE number = 8", "row 9 (revision 9, ordinal 0) comes after row 7"),
        ("DELETE FROM history WHERE number = 30", "29 rows; at the last clean stop it had 30"),
        ("DELETE FROM history WHERE number < 4", "row 4 (revision 4, ordinal 0) comes after row 0"),
        ("UPDATE history SET number = 99 WHERE number = 8", "comes after revision 30"),
        ("UPDATE meta SET value = '1f' WHERE name = 'epoch'", "'epoch' in meta does not match"),
        ("DELETE FROM meta WHERE name = 'inode'", "'inode' is missing in meta"),
        (
            "UPDATE meta SET checksum = checksum + 1 WHERE name = 'generation'",
            "'generation' in meta does not match"
        ),
        ("UPDATE meta SET value = 'x' WHERE name = 'rows at a clean stop'", "does not match"),
        ("DROP VIEW entries", "entries is missing"),
        (
            "CREATE TRIGGER t AFTER INSERT ON history BEGIN DELETE FROM meta WHERE 0; END",
            "it has the trigger 't', which stated has not made; remove it with DROP in sqlite3"
        ),
        ("CREATE INDEX i ON history(key)", "it has the index 'i', which stated has not made"),
        ("CREATE TABLE other(a)", "it has the table 'other', which stated has not made"),
        ("CREATE VIEW other AS SELECT 1", "it has the view 'other', which stated has not made"),
    ])
    func `what was altered is found and named`(sql: String, finding: String) throws {
        try store.fill(soundChanges(30))
        #expect(try store.check().findings == [])
        try Stranger(store.database).run(sql)
        let (findings, summary) = try store.check()
        #expect(findings.contains { $0.contains(finding) }, "\(findings)")
        #expect(summary.findingCount == findings.count)
    }

    /// A change that says what is not so.
    struct BrokenLink: Sendable {
        let finding: String
        let apply: @Sendable (inout BuiltBatch.Change) -> Void

        init(_ finding: String, _ apply: @escaping @Sendable (inout BuiltBatch.Change) -> Void) {
            self.finding = finding
            self.apply = apply
        }
    }

    @Test(arguments: [
        BrokenLink("does not name the change before it") { $0.previousRevision = 0 },
        BrokenLink("which is missing") { $0.key = [120] },
        BrokenLink("revision 2, ordinal 0, but the last is revision 19") {
            $0.previousRevision = 2
        },
        BrokenLink("says it was created") { $0.version = 1 },
        BrokenLink("says it was created") { $0.created = 2 },
        BrokenLink("deletes a key that does not exist") {
            $0.key = [121]
            $0.previousRevision = 0
            $0.value = nil
        },
        BrokenLink("should have ordinal 0") { $0.ordinal = 1 },
    ])
    func `a chain of changes that does not hold is found, though each checksum does`(
        link: BrokenLink
    ) throws {
        var changes = soundChanges(30)
        link.apply(&changes[28])
        try store.fill(changes)
        let (findings, _) = try store.check()
        #expect(findings.contains { $0.contains(link.finding) }, "\(findings)")
    }

    @Test(arguments: [
        BrokenLink("") { $0.revision = .max },
        BrokenLink("") { $0.revision = 1 << 53 },
        BrokenLink("") { $0.version = .max },
        BrokenLink("") { $0.created = .min },
        BrokenLink("") { $0.previousRevision = .min },
    ])
    func `numbers that no change has are refused by a start, a check and a salvage`(
        link: BrokenLink
    ) throws {
        try store.fill(soundChanges(30))
        var change = soundChanges(30)[29]
        link.apply(&change)
        try store.alterLast(to: change)
        let (findings, _) = try store.check()
        #expect(
            findings.contains { $0.contains("has numbers that no change can have") },
            "\(findings)"
        )
        #expect(throws: StateError.self) { try store.contents() }
        let target = try TemporaryStore()
        let (_, summary) = try store.salvage(to: target)
        #expect(summary.rowCount == 29 && !summary.isWhole)
        #expect(try target.contents().changes.count == 29)
    }

    @Test(arguments: ["compacted revision", "least revision", "rows at a clean stop"])
    func `a number of meta that none can be is refused by a start, and not believed by a salvage`(
        name: String
    ) throws {
        try store.fill(soundChanges(30))
        try store.alterMeta(name, to: "\(Int64.max)")
        #expect(throws: StateError.self) { try store.contents() }
        let target = try TemporaryStore()
        #expect(try store.salvage(to: target).summary.rowCount == 30)
        #expect(try target.contents().loaded.revision == 30 + 1 << 32)
    }

    @Test func `of many findings a hundred are reported, all are counted`() throws {
        try store.fill(soundChanges(300))
        try Stranger(store.database).run("UPDATE history SET time = time + 1 WHERE number <= 150")
        let (findings, summary) = try store.check()
        #expect(findings.count == 100)
        #expect(summary.findingCount == 150)
        #expect(summary.rowCount == 300)
    }

    @Test func `a long history is read in short transactions`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        for part in 0..<30 as Range<Int64> {
            try BuiltBatch(
                (1...10_000 as ClosedRange<Int64>).map { index in
                    let revision = part * 10_000 + index
                    return BuiltBatch.Change(
                        revision: revision,
                        key: Array("key/\(revision)".utf8),
                        value: Array("value \(revision)".utf8),
                        created: revision
                    )
                }
            ).commit(to: backing)
        }
        backing.close()
        var findings: [String] = []
        var counts: [Int64] = []
        let check = StoreCheck(store: store.directory) {
            findings.append($0)
        } progress: {
            counts.append($0)
        }
        let summary = try check.run()
        #expect(findings == [])
        #expect(summary.rowCount == 300_000 && summary.entryCount == 300_000)
        #expect(counts.count > 1 && counts.last == 300_000 && counts == counts.sorted())
    }

    @Test func `a page that is damaged is found, and what cannot be read is said`() throws {
        try store.fillWithHistory(commitCount: 300, seed: 3)
        var bytes = try readFile(store.database)
        let pages = try PageTable(store.database, pageCount: bytes.count / pageByteCount)
        bytes[(pages.leaves[10] - 1) * pageByteCount] = 0xFF
        try write(bytes, to: store.database)
        let (findings, _) = try store.check()
        #expect(findings.contains { $0.contains("cannot be read") }, "\(findings)")
        #expect(try readFile(store.database) == bytes)
    }

    @Test func `no store, a newer format and what is no store are refused`() throws {
        #expect(try #require(throws: StateError.self) { try store.check() }.code == .storage)
        try store.fill(soundChanges(3))
        try Stranger(store.database).run("PRAGMA user_version=7")
        #expect(try #require(throws: StateError.self) { try store.check() }.code == .newerFormat)
        try write(Array("no database".utf8), to: store.database)
        #expect(try #require(throws: StateError.self) { try store.check() }.code == .corrupt)
    }

    /// `count` changes of ten keys, one revision each, as a keyspace makes them.
    private func soundChanges(_ count: Int64) -> [BuiltBatch.Change] {
        (1...count).map { revision in
            BuiltBatch.Change(
                revision: revision,
                key: Array("key/\(revision % 10)".utf8),
                value: Array("value \(revision)".utf8),
                created: (revision - 1) % 10 + 1,
                version: (revision - 1) / 10 + 1,
                previousRevision: revision <= 10 ? 0 : revision - 10
            )
        }
    }
}

extension TemporaryStore {
    /// Has the last row say what `change` does, with the checksum of that.
    fileprivate func alterLast(to change: BuiltBatch.Change) throws {
        let checksum = change.key.withUnsafeBytes { key in
            (change.value ?? []).withUnsafeBytes { value in
                RowChecksum.of(
                    StoredChange(
                        revision: change.revision,
                        ordinal: change.ordinal,
                        key: key,
                        value: value,
                        created: change.created,
                        owner: change.owner,
                        version: change.version,
                        time: change.time,
                        expires: nil,
                        cause: Bytes(start: nil, count: 0),
                        previousRevision: change.previousRevision,
                        previousOrdinal: change.previousOrdinal
                    )
                )
            }
        }
        try Stranger(database).run(
            """
            UPDATE history SET revision = \(change.revision), ordinal = \(change.ordinal), version = \(change.version),
            created = \(change.created), previous_revision = \(change.previousRevision), checksum = \(checksum)
            WHERE number = (SELECT max(number) FROM history)
            """
        )
    }

    /// Has `meta` say something else, with the checksum of that.
    fileprivate func alterMeta(_ name: String, to value: String) throws {
        let checksum = Array("\(name)\0\(value)".utf8)
            .withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) }
        try Stranger(database).run(
            "UPDATE meta SET value = '\(value)', checksum = \(checksum) WHERE name = '\(name)'"
        )
    }
}
