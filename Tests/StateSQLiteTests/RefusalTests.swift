import Glibc
import StateEngine
import StateSQLite
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

    @Test func `a list of free pages that names pages in use is refused`() throws {
        try store.fill(sampleChanges(300))
        var bytes = try readFile(store.database)
        bytes.replaceSubrange(32..<40, with: [0, 0, 0, 2, 0, 0, 0, 1])
        try write(bytes, to: store.database)
        let error = try refusal()
        #expect(error.code == .corrupt)
        #expect(error.message.contains("freelist"))
    }

    @Test func `a log without its database is refused and kept`() throws {
        let backing = store.backing()
        _ = try backing.load { _ in }
        try BuiltBatch(sampleChanges(3)).commit(to: backing)
        let log = try readFile(store.log)
        let orphan = try TemporaryStore()
        mkdir(orphan.directory, 0o700)
        try write(log, to: orphan.log)
        let error = try #require(throws: StateError.self) { try orphan.contents() }
        #expect(error.code == .corrupt)
        #expect(try readFile(orphan.log) == log)
        backing.close()
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

    @Test(arguments: [
        "DELETE FROM history WHERE revision = 8",
        "DELETE FROM history WHERE revision = 30",
    ])
    func `a row missing after a clean stop is refused`(deletion: String) throws {
        try store.fill(sampleChanges(30))
        try Stranger(store.database).run(deletion)
        let error = try refusal()
        #expect(error.code == .corrupt)
        #expect(error.message.contains("29 rows"))
        #expect(error.message.contains("stated --salvage"))
    }

    @Test(arguments: [
        "UPDATE history SET value = x'00' WHERE revision = 8",
        "UPDATE history SET value = NULL WHERE revision = 8",
        "UPDATE history SET key = 'other' WHERE revision = 8",
        "UPDATE history SET created = created + 1 WHERE revision = 8",
        "UPDATE history SET owner = 0 WHERE revision = 8",
        "UPDATE history SET version = version + 1 WHERE revision = 8",
        "UPDATE history SET time = time + 1 WHERE revision = 8",
        "UPDATE history SET expires = 0 WHERE revision = 8",
        "UPDATE history SET cause = NULL WHERE revision = 8",
        "UPDATE history SET previous_revision = 1 WHERE revision = 8",
        "UPDATE history SET previous_ordinal = 1, previous_revision = 2 WHERE revision = 8",
        "UPDATE history SET checksum = checksum + 1 WHERE revision = 8",
        "UPDATE history SET ordinal = 1 WHERE revision = 8",
    ])
    func `a row that was altered is refused with its revision`(update: String) throws {
        try store.fill(sampleChanges(30))
        try Stranger(store.database).run(update)
        let error = try refusal()
        #expect(error.code == .corrupt)
        #expect(error.message.contains("revision 8"))
    }

    @Test(arguments: [
        "UPDATE meta SET value = '1f' WHERE name = 'epoch'",
        "DELETE FROM meta WHERE name = 'inode'", "DROP VIEW entries",
    ])
    func `an altered frame of the store is refused`(sql: String) throws {
        try store.fill(sampleChanges(3))
        try Stranger(store.database).run(sql)
        #expect(try refusal().code == .corrupt)
    }
}
