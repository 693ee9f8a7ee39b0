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

    /// What a program keeps of a database that it opened in passing.
    enum Holder: CaseIterable {
        case keyspace, container, query, watch

        func hold(_ keyspace: LocalKeyspace) throws -> any AnyObject {
            switch self {
            case .keyspace: keyspace
            case .container: try PersistentState(0, key: "n", in: keyspace)
            case .query: try keyspace.query(StateQuery("n", as: Int.self))
            case .watch: keyspace.watch { _ in }
            }
        }
    }

    @Test(arguments: Holder.allCases)
    func `a database stays open as long as anything of it is held`(holder: Holder) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "app.db")
        do {
            let held = try holder.hold(SQLiteDatabase(path: path).keyspace)
            let owner = try #require(throws: StateError.self) {
                try LocalKeyspace(backing: SQLiteBacking(path: path))
            }
            #expect(owner.code == .locked)
            let again = try SQLiteState(0, key: "n", in: SQLiteDatabase(path: path))
            try again ~> 7
            if let state = held as? PersistentState<Int> { #expect(state.value == 7) }
        }
        // A query may just be catching up, on a thread of the library.
        var later: LocalKeyspace?
        #expect(
            eventually {
                later = try? LocalKeyspace(backing: SQLiteBacking(path: path))
                return later != nil
            }
        )
        #expect(later?.entry(for: "n")?.value == Array("7".utf8))
    }

    @Test func `the keyspace of a database of one expression takes changes`() throws {
        let directory = try TemporaryDirectory()
        let keyspace = try SQLiteDatabase(path: directory.path(of: "app.db")).keyspace
        let memory = SQLiteDatabase.inMemory.keyspace
        for keyspace in [keyspace, memory] {
            let state = try PersistentState(0, key: "n", in: keyspace)
            try state ~> 1
            #expect(keyspace.entry(for: "n")?.value == Array("1".utf8))
        }
    }

    @Test func `a database that was closed may be opened again while it is held`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path(of: "app.db")
        let first = try SQLiteDatabase(path: path)
        try first.keyspace.apply([.set("k", [49])])
        first.keyspace.close()
        first.keyspace.close()
        let second = try SQLiteDatabase(path: path)
        #expect(second.keyspace !== first.keyspace)
        #expect(second.keyspace.entry(for: "k")?.value == [49])
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
