import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Starts on a disk that fails: each refuses by name or serves everything, and the next one has it all.
@Suite(.serialized) struct FailingStartTests {
    private let directory: TemporaryDirectory
    private let data: String

    init() throws {
        directory = try TemporaryDirectory()
        data = directory.path(of: "data")
    }

    /// Fills a store, with a clean stop in the middle where `stops` is set, and with none at the end where it is not.
    private func fill(stops: Bool) throws -> [String: String] {
        let server = try ServedKeyspace(SQLiteBacking(directory: data))
        let peer = try server.connect()
        for number in 0..<40 { _ = try peer.ask("SET k\(number % 9) v\(number)") }
        if stops { server.stop() }
        // What a crash would leave is what is there now: the copy is made before the stop.
        let crashed = directory.path(of: "crashed")
        try run("cp", data, crashed)
        server.stop()
        if !stops {
            try run("rm", data)
            try #require(rename(crashed, data) == 0)
        }
        return StoredHistory.values(
            after: (0..<40).map { .init(revision: 0, key: "k\($0 % 9)", value: "v\($0)") }
        )
    }

    private func run(_ program: String, _ arguments: String...) throws {
        let result = try runCommand(program, ["-r"] + arguments)
        try #require(result.exitCode == 0)
    }

    /// What there is; an empty log is none.
    private func files() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in ["stated.db", "stated.db-wal"] {
            let path = "\(data)/\(name)"
            if access(path, F_OK) == 0 { files[name] = try readFile(path) }
        }
        if files["stated.db-wal"] == [] { files["stated.db-wal"] = nil }
        return files
    }

    /// Starts with a disk on which the `number`th such operation fails.
    ///
    /// - Returns: Whether there were so many of them.
    private func start(
        failing operation: Faults.Operation,
        _ number: Int64,
        _ error: Int32,
        expecting values: [String: String]
    ) throws -> Bool {
        let faults = try Faults(below: data)
        faults.fail(operation, number: number, with: error)
        let before = try files()
        do {
            let keyspace = try StoredHistory.whenUnlocked {
                try LocalKeyspace(backing: SQLiteBacking(directory: data))
            }
            #expect(keyspace.keyCount == values.count)
            keyspace.close()
        } catch let error as StateError {
            #expect(error.code == .storage || error.code == .noSpace, "\(error)")
            #expect(error.message.contains("\(data)/stated.db"))
            let hasFailedEarly = operation == .open && !before.isEmpty
            if hasFailedEarly { #expect(try files() == before, "it is not left as it is") }
        }
        let hasFailed = faults.failedCount > 0
        faults.heal()
        #expect(
            try StoredHistory(data).values == values,
            "law: never silent about storage; \(operation) \(number)"
        )
        return hasFailed
    }

    @Test(
        arguments: [Faults.Operation.open, .write, .sync, .truncate, .delete],
        [EIO, ENOSPC]
    )
    func `a start of a store on a disk that fails costs nothing`(
        operation: Faults.Operation,
        error: Int32
    ) throws {
        let values = try fill(stops: true)
        var number: Int64 = 1
        while try start(failing: operation, number, error, expecting: values) { number += 1 }
        #expect(number > 1, "nothing failed")
        #expect(number < 200)
    }

    @Test(arguments: [Faults.Operation.open, .write, .sync])
    func `a start after a crash on a disk that fails costs nothing`(
        operation: Faults.Operation
    ) throws {
        var number: Int64 = 0
        var hasFailed = true
        while hasFailed {
            number += 1
            if number > 1 { try run("rm", data) }
            let values = try fill(stops: false)
            hasFailed = try start(failing: operation, number, EIO, expecting: values)
        }
        #expect(number > 1, "nothing failed")
    }

    @Test(arguments: [Faults.Operation.open, .write, .sync], [EIO, ENOSPC])
    func `a store that could not be made is made by the next start`(
        operation: Faults.Operation,
        error: Int32
    ) throws {
        var number: Int64 = 0
        repeat {
            number += 1
            if number > 1 { try run("rm", data) }
        } while try start(failing: operation, number, error, expecting: [:])
        #expect(number > 1, "nothing failed")
    }
}
