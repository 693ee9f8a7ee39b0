import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport
import Testing

/// Starts on a disk that fails: each refuses by name or serves everything, and the next one has it all.
@Suite(.serialized) struct FailingStartTests {
    private let directory: TemporaryDirectory
    private let data: String
    private let wrapped = Observed<FaultyFiles?>(nil)

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

    /// What fails: an operation of SQLite, or a call for the log.
    enum Operation: CaseIterable {
        case open, write, sync, logWrite, logSync, logOther

        fileprivate var database: Faults.Operation? {
            switch self {
            case .open: .open
            case .write: .write
            case .sync: .sync
            default: nil
            }
        }

        fileprivate var log: FaultyFiles.Call {
            self == .logWrite ? .write : self == .logSync ? .sync : .other
        }
    }

    /// Starts with a disk on which the `number`th such operation fails.
    ///
    /// - Returns: Whether there were so many of them.
    private func start(
        failing operation: Operation,
        _ number: Int,
        _ error: Int32,
        expecting values: [String: String]
    ) throws -> Bool {
        let faults = try Faults(below: data)
        mkdir(data, 0o700)
        let backing = SQLiteBacking(
            StoreLocation(directory: data),
            log: data + "/log",
            SQLiteBacking.Options()
        ) { [wrapped] path throws(LogFileFailure) in
            let files = FaultyFiles(try LogDirectory(path))
            if operation.database == nil {
                files.fail(operation.log, number: number, with: error, isTorn: number % 2 == 0)
            }
            wrapped.update { $0 = files }
            return files
        }
        if let operation = operation.database {
            faults.fail(operation, number: Int64(number), with: error)
        }
        do {
            let keyspace = try StoredHistory.whenUnlocked { try LocalKeyspace(backing: backing) }
            #expect(keyspace.keyCount == values.count)
            keyspace.close()
        } catch let error as StateError {
            #expect([.storage, .noSpace, .readOnly].contains(error.code), "\(error)")
            #expect(error.message.contains(data))
        }
        let hasFailed = faults.failedCount > 0 || wrapped.current?.failedCount ?? 0 > 0
        faults.heal()
        #expect(
            try StoredHistory(data).values == values,
            "law: never silent about storage; \(operation) \(number)"
        )
        return hasFailed
    }

    @Test(arguments: Operation.allCases, [EIO, ENOSPC])
    func `a start of a store on a disk that fails costs nothing`(
        operation: Operation,
        error: Int32
    ) throws {
        let values = try fill(stops: true)
        var number = 1
        while try start(failing: operation, number, error, expecting: values) { number += 1 }
        #expect(number > 1, "nothing failed")
        #expect(number < 200)
    }

    @Test(arguments: Operation.allCases)
    func `a start after a crash on a disk that fails costs nothing`(
        operation: Operation
    ) throws {
        var number = 0
        var hasFailed = true
        while hasFailed {
            number += 1
            if number > 1 { try run("rm", data) }
            let values = try fill(stops: false)
            hasFailed = try start(failing: operation, number, EIO, expecting: values)
        }
        #expect(number > 1, "nothing failed")
    }

    @Test(arguments: Operation.allCases, [EIO, ENOSPC])
    func `a store that could not be made is made by the next start`(
        operation: Operation,
        error: Int32
    ) throws {
        var number = 0
        repeat {
            number += 1
            if number > 1 { try run("rm", data) }
        } while try start(failing: operation, number, error, expecting: [:])
        #expect(number > 1, "nothing failed")
    }
}
