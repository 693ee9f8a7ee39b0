import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What was committed is read back.
struct HistoryTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    @Test func `every column of a change is read back`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        let key = Array("ключ/é".utf8)
        let value: [UInt8] = [0, 0xFF, 0x80, 10]
        let cause = Array("1000:100:4242:vi%3Am:some client".utf8)
        try backing.commit(changeCount: 3) { append in
            try key.withUnsafeBytes { key in
                try value.withUnsafeBytes { value in
                    try cause.withUnsafeBytes { cause in
                        try append(change(1, key, value, cause, expires: nil))
                        try append(change(1 << 52, key, value, cause, expires: 1_800_000_000_001))
                        try append(
                            change(1 << 52 + 1, key, nil, Bytes(start: nil, count: 0), expires: nil)
                        )
                    }
                }
            }
        }
        backing.close()
        let changes = try store.contents().changes
        try #require(changes.count == 3)
        #expect(changes[0].plain.key == key)
        #expect(changes[0].plain.value == value)
        #expect(changes[0].plain.cause == cause)
        #expect(changes[0].plain.owner == .max)
        #expect(changes[0].plain.version == 1 << 40)
        #expect(changes[0].plain.time == 1_700_000_000_123)
        #expect(changes[0].plain.created == 1)
        #expect(changes[0].plain.previousRevision == 0)
        #expect(changes[0].expires == nil)
        #expect(changes[1].plain.previousRevision == 7)
        #expect(changes[1].plain.previousOrdinal == 65_536)
        #expect(changes[1].expires == 1_800_000_000_001)
        #expect(changes[2].plain.value == nil)
        #expect(changes[2].plain.cause.isEmpty)
        #expect(changes[2].expires == nil)
    }

    private func change(
        _ revision: Int64,
        _ key: Bytes,
        _ value: Bytes?,
        _ cause: Bytes,
        expires: Int64?
    ) -> StoredChange {
        StoredChange(
            revision: revision,
            ordinal: 0,
            key: key,
            value: value,
            created: 1,
            owner: .max,
            version: 1 << 40,
            time: 1_700_000_000_123,
            expires: expires,
            cause: cause,
            previousRevision: revision == 1 ? 0 : 7,
            previousOrdinal: revision == 1 ? 0 : 65_536
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

    @Test func `the checksum of a row is CRC-32C of the documented layout`() throws {
        try store.fill([
            BuiltBatch.Change(revision: 1, key: [107], value: [118], created: 1, time: 1_000)
        ])
        let rows = try Stranger(store.database).run("SELECT checksum FROM history")
        var bytes: [UInt8] = []
        for number in [1, 1, 1, 1_000, Int64.min, 0] as [Int64] {
            bytes.append(contentsOf: (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) })
        }
        for number in [0, 0, 0, 1, 1, 0] as [UInt8] { bytes.append(contentsOf: [number, 0, 0, 0]) }
        bytes.append(contentsOf: [107, 118])
        #expect(rows == [["\(crc32c(bytes))"]])
        #expect(crc32c(bytes) == 0x0C55_5CCA)
    }

    /// Bit by bit, from the polynomial.
    private func crc32c(_ bytes: [UInt8]) -> UInt32 {
        var crc = UInt32.max
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
        }
        return ~crc
    }

    @Test func `files are for their owner only`() throws {
        try store.fill(sampleChanges(1))
        for (path, mode) in [
            (store.directory, 0o700), (store.database, 0o600), (store.directory + "/lock", 0o600),
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
        #expect(Set(names(in: store.directory)) == ["app.db", "app.db-mark", "app.db.lock"])
        let again = SQLiteBacking(path: path)
        #expect(try Contents(of: again).changes.count == 5)
        again.close()
    }
}
