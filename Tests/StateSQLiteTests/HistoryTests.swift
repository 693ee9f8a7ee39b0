import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What was committed is read back.
struct HistoryTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    /// Of the database after a clean stop, and of the log after none.
    @Test(arguments: [true, false])
    func `every column of a change is read back`(closes: Bool) throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        let place = 1 << 52 as Int64
        let changes = [
            change(1, value: [0, 0xFF, 0x80, 10], expires: nil),
            change(place, value: [], expires: 1_800_000_000_001),
            change(place + 1, value: nil, expires: nil),
        ]
        for change in changes { try BuiltBatch([change]).commit(to: backing) }
        let copy = try TemporaryStore()
        if closes { backing.close() }
        try store.copy(to: copy)
        backing.close()
        let contents = try (closes ? store : copy).contents()
        #expect(contents.changes.map(\.plain) == changes)
        #expect(contents.changes.map(\.expires) == changes.map(\.expires))
        let newest = try #require(contents.newest[changes[2].key])
        var expected = changes[2]
        // Who loads the newest changes is not told what they superseded.
        (expected.previousRevision, expected.previousOrdinal) = (0, 0)
        #expect(newest.plain == expected)
    }

    private func change(_ revision: Int64, value: [UInt8]?, expires: Int64?) -> BuiltBatch.Change {
        BuiltBatch.Change(
            revision: revision,
            key: Array("ключ/é".utf8),
            value: value,
            created: 1,
            owner: .max,
            version: 1 << 40,
            time: 1_700_000_000_123,
            cause: revision > 1 << 52 ? [] : Array("1000:100:4242:vi%3Am:some client".utf8),
            previousRevision: revision == 1
                ? 0 : revision >> 52 == 1 && revision & 1 == 1 ? revision - 1 : 1,
            expires: expires
        )
    }

    @Test(arguments: [0, 1, 1_000, 5_000, 8 << 20])
    func `a value of any bytes and size is read back`(byteCount: Int) throws {
        var numbers = SplitMix(seed: UInt64(byteCount))
        let words = (0..<(byteCount + 7) / 8).map { _ in numbers.next() }
        let value = words.withUnsafeBytes { Array($0.prefix(byteCount)) }
        try store.fill([BuiltBatch.Change(revision: 1, key: [107], value: value, created: 1)])
        #expect(try store.contents().changes.map(\.plain.value) == [value])
    }

    @Test func `transactions are read back in order with their ordinals`() throws {
        let changes: [BuiltBatch.Change] = (0..<90).map { index in
            let former = index - 45
            return BuiltBatch.Change(
                revision: Int64(index / 30 + 1) * 10,
                ordinal: Int32(index % 30),
                key: Array("k\(index % 45)".utf8),
                value: index % 4 == 3 ? nil : Array("\(index)".utf8),
                created: 10,
                previousRevision: former < 0 ? 0 : Int64(former / 30 + 1) * 10,
                previousOrdinal: former < 0 ? 0 : Int32(former % 30)
            )
        }
        try store.fill(changes)
        let contents = try store.contents()
        #expect(contents.changes.map(\.plain) == changes)
        #expect(contents.loaded.revision == 30)
    }

    @Test func `an empty store has an epoch, and keeps it`() throws {
        let first = try store.contents().loaded
        #expect(first.revision == 0)
        #expect(first.epoch.bits != 0)
        try store.fill(sampleChanges(3))
        let second = try store.contents().loaded
        #expect(second == LoadedStore(epoch: first.epoch, revision: 3))
    }

    @Test func `people see the current state in a view`() throws {
        try store.fill(sampleChanges(10))
        let rows = try Stranger(store.database).run(
            "SELECT key, value, revision, time, by FROM entries ORDER BY key"
        )
        #expect(rows.count == 9)
        #expect(rows[0][0] == "key/0")
        #expect(rows[0][1] == "value 0")
        #expect(rows[0][2] == "1")
        #expect(rows[0][3]?.hasPrefix("2023-11-") == true)
        #expect(rows[0][4] == "1000:1000:4242:editor:")
        #expect(!rows.contains { $0[0] == "key/6" })
    }

    @Test func `the view shows the latest value of a key`() throws {
        try store.fill(sampleChanges(41))
        let rows = try Stranger(store.database).run("SELECT value FROM entries WHERE key = 'key/0'")
        #expect(rows == [["value 40"]])
    }

    @Test func `files are for their owner only`() throws {
        try store.fill(sampleChanges(1))
        for (path, mode) in [
            (store.directory, 0o700), (store.database, 0o600), (store.log, 0o700),
            (store.directory + "/lock", 0o600),
        ] as [(String, mode_t)] {
            var status = stat()
            try #require(stat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == mode, "\(path)")
        }
    }

    @Test func `a store in a file of its own`() throws {
        mkdir(store.directory, 0o700)
        let path = store.directory + "/app.db"
        let backing = SQLiteBacking(path: path)
        _ = try backing.load { _ in }
        try BuiltBatch(sampleChanges(5)).commit(to: backing)
        backing.close()
        #expect(Set(names(in: store.directory)) == ["app.db", "app.db-log", "app.db.lock"])
        let again = SQLiteBacking(path: path)
        #expect(try Contents(of: again).changes.count == 5)
        again.close()
    }
}
