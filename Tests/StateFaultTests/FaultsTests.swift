import CSQLite
import Glibc
import StateTestSupport
import Testing

/// The disk that the other tests trust to fail does so.
struct FaultsTests {
    private let directory: TemporaryDirectory
    private let faults: Faults
    private var database: String { directory.path(of: "data/plain.db") }

    init() throws {
        directory = try TemporaryDirectory()
        mkdir(directory.path(of: "data"), 0o700)
        faults = try Faults(below: directory.path(of: "data"))
    }

    /// Opens a database and runs statements, until one fails.
    ///
    /// - Returns: The extended result code of the last one, and the connection, open.
    private func run(_ path: String, _ statements: [String]) -> (Int32, OpaquePointer?) {
        var handle: OpaquePointer?
        var code = sqlite3_open(path, &handle)
        for statement in statements where code == SQLITE_OK {
            code = sqlite3_exec(handle, statement, nil, nil, nil)
        }
        return (code == SQLITE_OK ? code : sqlite3_extended_errcode(handle), handle)
    }

    private static func table(_ synchronous: String) -> [String] {
        ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=\(synchronous)", "CREATE TABLE t(n)"]
    }

    private static func rows(_ numbers: Range<Int>) -> [String] {
        numbers.map { "INSERT INTO t VALUES(\($0))" }
    }

    /// How many rows are left of 20 after each of 40 power cuts.
    private func rowsLeft(_ synchronous: String) throws -> Set<Int32> {
        let (code, handle) = run(database, Self.table(synchronous) + Self.rows(0..<20))
        defer { sqlite3_close(handle) }
        try #require(code == SQLITE_OK)
        var left: Set<Int32> = []
        for seed in 0..<40 as Range<UInt64> {
            let target = directory.path(of: "cut-\(seed)")
            try faults.cutPower(at: faults.place + 1, leaving: target, seed: seed)
            let row = sqlite3_exec(handle, "INSERT INTO t VALUES(20)", nil, nil, nil)
            try #require(row == SQLITE_OK)
            left.insert(count("\(target)/plain.db"))
            sqlite3_exec(handle, "DELETE FROM t WHERE n = 20", nil, nil, nil)
        }
        #expect(faults.cutCount == 40)
        return left
    }

    /// The rows in a table; -1 where it is not there or damaged.
    private func count(_ path: String) -> Int32 {
        let (_, handle) = run(path, [])
        defer { sqlite3_close(handle) }
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        sqlite3_prepare_v2(handle, "SELECT count(*) FROM t", -1, &statement, nil)
        return sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int(statement, 0) : -1
    }

    @Test func `what was synced outlives a power cut`() throws {
        #expect(try rowsLeft("FULL") == [20])
    }

    @Test func `what was not synced is lost in some power cuts and kept in others`() throws {
        let left = try rowsLeft("OFF")
        #expect(left.contains(20))
        #expect(left.count > 1)
    }

    @Test(
        arguments: [
            (.sync, EIO, SQLITE_IOERR | 4 << 8), (.sync, ENOSPC, SQLITE_IOERR | 4 << 8),
            (.write, EIO, SQLITE_IOERR | 3 << 8), (.write, ENOSPC, SQLITE_FULL),
            (.truncate, EIO, SQLITE_IOERR | 6 << 8),
        ] as [(Faults.Operation, Int32, Int32)]
    )
    func `what fails gives what SQLite's own VFS would`(
        operation: Faults.Operation,
        error: Int32,
        expected: Int32
    ) throws {
        let (made, handle) = run(database, Self.table("FULL") + Self.rows(0..<3))
        defer { sqlite3_close(handle) }
        try #require(made == SQLITE_OK)
        faults.fail(operation, with: error)
        let work =
            operation == .truncate ? "PRAGMA wal_checkpoint(TRUNCATE)" : "INSERT INTO t VALUES(3)"
        #expect(sqlite3_exec(handle, work, nil, nil, nil) != SQLITE_OK)
        #expect(sqlite3_extended_errcode(handle) == expected)
        #expect(faults.failedCount == 1)
        #expect(sqlite3_exec(handle, work, nil, nil, nil) == SQLITE_OK)
    }

    @Test func `an open that fails names its error, and the next one succeeds`() throws {
        faults.fail(.open)
        let (code, handle) = run(database, Self.table("FULL"))
        sqlite3_close(handle)
        #expect(code == SQLITE_CANTOPEN)
        let (again, other) = run(database, Self.table("FULL"))
        sqlite3_close(other)
        #expect(again == SQLITE_OK)
    }

    @Test func `a second sync does not save what a first one failed to`() throws {
        let (made, handle) = run(database, Self.table("OFF"))
        defer { sqlite3_close(handle) }
        try #require(made == SQLITE_OK)
        try #require(
            sqlite3_exec(handle, Self.rows(0..<9).joined(separator: ";"), nil, nil, nil) == 0
        )
        faults.fail(.sync)
        for statement in ["PRAGMA synchronous=FULL", "INSERT INTO t VALUES(9)"] {
            sqlite3_exec(handle, statement, nil, nil, nil)
        }
        try #require(faults.failedCount == 1)
        let succeeded = sqlite3_exec(handle, "INSERT INTO t VALUES(10)", nil, nil, nil)
        try #require(succeeded == SQLITE_OK)
        var left: Set<Int32> = []
        for seed in 0..<20 as Range<UInt64> {
            let target = directory.path(of: "cut-\(seed)")
            try faults.cutPower(at: faults.place + 1, leaving: target, seed: seed)
            sqlite3_exec(handle, "INSERT INTO t VALUES(11)", nil, nil, nil)
            left.insert(count("\(target)/plain.db"))
        }
        #expect(left.contains { $0 < 9 })
    }
}
