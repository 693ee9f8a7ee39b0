import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// One keyspace for each database file of the process.
struct SQLiteDatabaseTests {
    @Test func `a file has one keyspace, and keeps its values`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "app.db")
        let epoch: Epoch
        do {
            let first = try SQLiteDatabase(path: path)
            epoch = first.keyspace.epoch
            try first.keyspace.apply([.set("k", [49])])
            let again = try SQLiteDatabase(path: directory.path + "/./app.db")
            #expect(again.keyspace === first.keyspace)
            #expect(
                try SQLiteDatabase(path: directory.path(of: "b.db")).keyspace !== first.keyspace
            )
        }
        let again = try SQLiteDatabase(path: path)
        #expect(again.keyspace.epoch == epoch)
        #expect(again.keyspace.entry(for: "k")?.value == [49])
    }

    @Test func `another owner is named`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "app.db")
        let keyspace = try LocalKeyspace(backing: SQLiteBacking(path: path))
        defer { keyspace.close() }
        let error = try #require(throws: StateError.self) { try SQLiteDatabase(path: path) }
        #expect(error.code == .locked && error.message.contains("process \(getpid())"))
    }

    @Test func `a directory is named as what it is, and stays without a lock file`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "d")
        try #require(mkdir(path, 0o700) == 0)
        let error = try #require(throws: StateError.self) { try SQLiteDatabase(path: path) }
        #expect(error.code == .storage && error.message.contains("\(path) is not a file"))
        #expect(access(path + ".lock", F_OK) != 0)
    }
}
