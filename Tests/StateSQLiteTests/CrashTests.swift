import Glibc
import StateEngine
import StateSQLite
import Testing

/// What an end without `close` leaves behind.
struct CrashTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    /// Commits one change at a time and ends without closing, as a process that is killed does.
    private func crash(after changes: [BuiltBatch.Change]) throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        for change in changes {
            try BuiltBatch([change]).commit(to: backing)
            backing.maintain()
        }
    }

    @Test func `every commit is there after a crash`() throws {
        try crash(after: sampleChanges(300))
        #expect(try store.contents().changes.map(\.plain) == sampleChanges(300))
    }

    @Test func `a crash after a clean stop and further commits is no damage`() throws {
        try store.fill(sampleChanges(50))
        try crash(after: sampleChanges(50, from: 51))
        #expect(try store.contents().loaded.revision == 100)
    }

    @Test func `a crash right after a start keeps the check of the number of rows`() throws {
        try store.fill(sampleChanges(50))
        try crash(after: [])
        try Stranger(store.database).run("DELETE FROM history WHERE revision = 50")
        #expect(throws: StateError.self) { try store.contents() }
    }

    @Test(arguments: [1, 24, 1_000, frameByteCount, frameByteCount + 1])
    func `a tail of the log that a power failure tore costs what it held, and no more`(
        byteCount: Int
    ) throws {
        try crash(after: sampleChanges(10))
        try store.forgetAcknowledged()
        var log = try readFile(store.log)
        let end = usedLogByteCount(of: log)
        try #require(end > frameByteCount * 10)
        for index in end - byteCount..<end { log[index] = 0xA5 }
        try write(log, to: store.log)
        let found = try store.contents().changes.map(\.plain)
        let lost = byteCount > frameByteCount ? 2 : 1
        #expect(found == Array(sampleChanges(10).dropLast(lost)))
    }

    @Test func `atomic: a transaction whose last page was torn is gone whole`() throws {
        var changes = sampleChanges(400, from: 3)
        for index in changes.indices {
            changes[index].revision = 3
            changes[index].ordinal = Int32(index)
        }
        do {
            let backing = store.backing()
            _ = try backing.load { _ in }
            try BuiltBatch(sampleChanges(2)).commit(to: backing)
            try BuiltBatch(changes).commit(to: backing)
        }
        try store.forgetAcknowledged()
        var log = try readFile(store.log)
        let end = usedLogByteCount(of: log)
        try #require(end > frameByteCount * 4)
        log[end - 1] ^= 1
        try write(log, to: store.log)
        #expect(try store.contents().changes.map(\.plain) == sampleChanges(2))
    }

    @Test func `what was begun behind the last commit and never acknowledged costs nothing`() throws
    {
        try crash(after: sampleChanges(10))
        var log = try readFile(store.log)
        let end = usedLogByteCount(of: log)
        // A frame of the same log, whose checksum does not fit there.
        log.replaceSubrange(end..<end + frameByteCount, with: log[end - frameByteCount..<end])
        try write(log, to: store.log)
        #expect(try store.contents().changes.map(\.plain) == sampleChanges(10))
    }

    @Test func `a copy is another store, and its revisions rise`() throws {
        let backing = store.backing()
        let original = try backing.load { _ in }
        try BuiltBatch(sampleChanges(9)).commit(to: backing)
        let copy = try TemporaryStore()
        try store.copy(to: copy)
        try BuiltBatch(sampleChanges(1, from: 10)).commit(to: backing)
        backing.close()

        let found = try copy.contents()
        #expect(found.changes.map(\.plain) == sampleChanges(9))
        #expect(found.loaded.epoch != original.epoch)
        #expect(found.loaded.revision == 9 + 1 << 32)
        // Another start of the copy is the same store.
        #expect(try copy.contents().loaded == found.loaded)
        #expect(try store.contents().loaded == LoadedStore(epoch: original.epoch, revision: 10))
    }

    @Test func `a person who leaves write-ahead logging loses nothing`() throws {
        try store.fill(sampleChanges(5))
        #expect(try Stranger(store.database).run("PRAGMA journal_mode=DELETE") == [["delete"]])
        try crash(after: sampleChanges(5, from: 6))
        #expect(try store.contents().loaded.revision == 10)
        #expect(try Stranger(store.database).run("PRAGMA journal_mode") == [["wal"]])
    }
}
