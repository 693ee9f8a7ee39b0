import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What is not ours, or not whole, is refused by name and left as it is.
struct RefusalTests {
    let store: TemporaryStore

    init() throws { store = try TemporaryStore() }

    /// The error of a start, which leaves the database as it is.
    private func refusal() throws -> StateError {
        let before = try readFile(store.database)
        let error = try #require(throws: StateError.self) { try store.contents() }
        #expect(try readFile(store.database) == before)
        #expect(error.message.contains(store.database))
        return error
    }

    @Test func `durable before told: with 10 stores each notices that its database is removed`()
        throws
    {
        // More than are watched by inotify.
        let stores = try (0..<10).map { _ in try TemporaryStore() }
        let backings = stores.map { $0.backing() }
        defer { for backing in backings { backing.close() } }
        for backing in backings {
            _ = try backing.load { _ in }
            // The first commit asks for all files anyway.
            try BuiltBatch(sampleChanges(1)).commit(to: backing)
        }
        for (store, backing) in zip(stores, backings) {
            unlink(store.database)
            let error = #expect(throws: StateError.self) {
                try BuiltBatch(sampleChanges(1, from: 2)).commit(to: backing)
            }
            #expect(error?.message.contains("\(store.database) is missing") == true)
        }
    }

    @Test func `a person who leaves write-ahead logging loses nothing`() throws {
        try store.fill(sampleChanges(30))
        let before = try store.contents()
        #expect(try Stranger(store.database).run("PRAGMA journal_mode=DELETE") == [["delete"]])
        #expect(try store.contents() == before)
        #expect(try Stranger(store.database).run("PRAGMA journal_mode") == [["wal"]])
    }

    @Test func `a newer format is refused with its number`() throws {
        try store.fill(sampleChanges(3))
        try Stranger(store.database).run("PRAGMA user_version=7")
        let error = try refusal()
        #expect(error.code == .newerFormat)
        #expect(error.message.contains("format 7"))
    }

    @Test func `another program's database is refused`() throws {
        mkdir(store.directory, 0o700)
        let stranger = try Stranger(store.database)
        try stranger.run("PRAGMA journal_mode=WAL")
        try stranger.run("CREATE TABLE history(revision)")
        try stranger.run("PRAGMA wal_checkpoint(TRUNCATE)")
        let error = try refusal()
        #expect(error.code == .corrupt)
        #expect(error.message.contains("another program"))
    }

    @Test(arguments: ["", "not a database, but long enough to have a header of a hundred bytes: "])
    func `what is no database is refused`(text: String) throws {
        mkdir(store.directory, 0o700)
        try write(Array((text + text).utf8), to: store.database)
        let error = try refusal()
        #expect(error.code == .corrupt)
        #expect(error.message.contains("not an SQLite database"))
    }

    @Test func `a header with which SQLite would refuse the first write is refused at the start`()
        throws
    {
        try store.fill(sampleChanges(3))
        var bytes = try readFile(store.database)
        bytes[18] ^= 0x40
        try write(bytes, to: store.database)
        let error = try refusal()
        #expect(error.code == .corrupt)
        #expect(error.message.contains("write version 66"))
    }

    @Test func `a list of free pages that names pages in use is found before the log lets go`()
        throws
    {
        try store.fill(sampleChanges(300))
        var bytes = try readFile(store.database)
        bytes.replaceSubrange(32..<40, with: [0, 0, 0, 2, 0, 0, 0, 1])
        try write(bytes, to: store.database)
        let backing = store.backing {
            $0.history = .none
            $0.settling.logByteCount = 20_000
        }
        _ = try backing.load { _ in }
        defer { backing.close() }
        for number in 1...2_000 as ClosedRange<Int64> {
            try BuiltBatch(sampleChanges(1, from: 300 + number)).commit(to: backing)
        }
        #expect(eventually { backing.status.failure?.contains("freelist") == true })
        #expect(backing.status.segments.droppedCount == 0)
    }

    @Test func `a store that was closed has no owner, whoever is being started meanwhile`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        // Between fork and exec a child has every descriptor of its parent, as a copy of it has.
        let copies = names(in: "/proc/self/fd").compactMap(Int32.init)
            .filter { path(of: $0) == store.directory + "/lock" }.map { dup($0) }
        defer { for copy in copies { close(copy) } }
        #expect(copies.count == 1)
        backing.close()
        _ = try store.contents()
    }

    /// The file of a descriptor.
    private func path(of descriptor: Int32) -> String {
        var path = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/fd/\(descriptor)", &path, path.count)
        return String(
            decoding: path.prefix(max(0, count)).map { UInt8(bitPattern: $0) },
            as: UTF8.self
        )
    }

    @Test func `one authority: a second owner is refused with the pid of the first`() throws {
        let first = store.backing()
        _ = try first.load { _ in }
        let error = try #require(throws: StateError.self) { try store.backing().load { _ in } }
        #expect(error.code == .locked)
        #expect(error.message.contains("process \(getpid())"))
        #expect(error.message.contains(store.database))
        try BuiltBatch(sampleChanges(2)).commit(to: first)
        first.close()
        #expect(try store.contents().changes.count == 2)
    }

    @Test func `an owner that was only dropped can be followed`() throws {
        do {
            let first = store.backing()
            _ = try first.load { _ in }
        }
        _ = try store.contents()
    }

    @Test func `an unwritable directory is refused`() throws {
        // Not even root may make a file there.
        let error = try #require(throws: StateError.self) {
            try SQLiteBacking(path: "/sys/kernel/stated.db").load { _ in }
        }
        #expect(error.code == .storage)
        #expect(error.message.contains("/sys/kernel"))
    }

    @Test func `a directory whose parent is missing is refused`() throws {
        let error = try #require(throws: StateError.self) {
            try SQLiteBacking(directory: store.directory + "/a/b").load { _ in }
        }
        #expect(error.code == .storage)
        #expect(error.message.contains(store.directory + "/a/b"))
    }

    @Test func `a row missing after a clean stop is refused`() throws {
        try store.fill(sampleChanges(30))
        try Stranger(store.database).run("DELETE FROM newest WHERE key = 'key/8'")
        let error = try refusal()
        #expect(error.code == .corrupt)
        #expect(error.message.contains("19 rows"))
        #expect(error.message.contains("stated --salvage"))
    }

    @Test(arguments: [
        "value = x'00'", "value = NULL", "revision = 9", "ordinal = 1", "created = created + 1",
        "owner = 0", "version = version + 1", "time = time + 1", "expires = 0", "cause = NULL",
        "checksum = checksum + 1",
    ])
    func `a row that was altered is refused with its key`(change: String) throws {
        try store.fill(sampleChanges(30))
        try Stranger(store.database).run("UPDATE newest SET \(change) WHERE key = 'key/8'")
        let error = try refusal()
        #expect(error.code == .corrupt)
        #expect(error.message.contains("key/8"))
    }

    @Test(arguments: [
        "UPDATE meta SET value = '1f' WHERE name = 'epoch'",
        "DELETE FROM meta WHERE name = 'inode'", "DROP VIEW entries", "DROP INDEX deletes",
    ])
    func `an altered frame of the store is refused`(sql: String) throws {
        try store.fill(sampleChanges(3))
        try Stranger(store.database).run(sql)
        #expect(try refusal().code == .corrupt)
    }

    @Test func `an older format is refused with the way through a backup`() throws {
        try store.fill(sampleChanges(3))
        try Stranger(store.database).run("PRAGMA user_version=1")
        let error = try refusal()
        #expect(error.code == .storage)
        #expect(error.message.contains("format 1"))
        #expect(error.message.contains("statectl backup"))
    }
}
