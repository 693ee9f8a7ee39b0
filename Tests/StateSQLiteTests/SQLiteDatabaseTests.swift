import Glibc
import StateContainers
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
        #expect(
            error.code == .storage && error.message.contains("\(path) is a directory, not a file")
        )
        #expect(access(path + ".lock", F_OK) != 0)
    }

    @Test func `a database in memory is one of its own, and gone with its last container`() throws {
        let database = SQLiteDatabase.inMemory
        let first = try SQLiteState(0, key: "n", in: database)
        let same = try SQLiteState(0, key: "n", in: database)
        let other = try SQLiteState(0, key: "n", in: .inMemory)
        try first ~> { $0 += 1 }
        try withTransaction { tx in tx[first] += 1 }
        #expect(same.value == 2 && other.value == 0)
        #expect(database.path == ":memory:")
        #expect(access(":memory:", F_OK) != 0 && access(":memory:.lock", F_OK) != 0)
    }

    @Test func `SQLite's name of a database in memory is refused with ours`() throws {
        let error = #expect(throws: StateError.self) { try SQLiteDatabase(path: ":memory:") }
        #expect(error?.code == .storage)
        #expect(error?.message.contains("SQLiteDatabase.inMemory") == true)
        #expect(access(":memory:.lock", F_OK) != 0)
    }

    @Test func `without a history, a value that changes often leaves a short file`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "app.db")
        let count = 20_000
        do {
            let database = try SQLiteDatabase(path: path, history: .none)
            let state = try SQLiteState(0, key: "n", in: database, durability: .memory)
            for number in 1...count { try state ~> number }
            try database.keyspace.apply([.set("last", [49])])
        }
        let again = SQLiteBacking(path: path)
        var rowCount = 0
        _ = try again.load { _ in rowCount += 1 }
        again.close()
        #expect(rowCount < count / 2)
        let state = try SQLiteState(0, key: "n", in: SQLiteDatabase(path: path))
        #expect(state.value == count)
    }

    @Test func `a history is as long as it is asked for`() {
        #expect(HistoryLimits.none.changeCount == 0)
        let week = HistoryLimits.keep(changes: 5, byteCount: 1_000)
        #expect(week.changeCount == 5 && week.byteCount == 1_000)
        #expect(week.age == HistoryLimits().age)
    }
}
