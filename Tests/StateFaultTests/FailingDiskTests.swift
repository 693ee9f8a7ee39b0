import Glibc
import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// Each operation of a run of 200 commits and more in turn fails, once.
@Suite(.serialized) struct FailingDiskTests {
    /// An operation of the run, and how it fails.
    struct Turn: CustomTestStringConvertible, Sendable {
        var operation: Faults.Operation
        var number: Int64
        var error: Int32
        var manner: Faults.Manner

        var testDescription: String {
            "\(operation) \(number): \(String(cString: strerror(error)))"
        }

        /// Every operation of a kind, or as many of them as `STATED_DISK_TURNS` says, spread over the run from a random one;
        /// every other one in this manner.
        static func each(
            _ operation: Faults.Operation,
            _ error: Int32,
            _ manner: Faults.Manner
        ) -> [Turn] {
            let wanted = Int64(Extent.named("STATED_DISK_TURNS", short: 8))
            let count = (try? operationCounts.get()[operation]) ?? 1
            let step = max(1, count / max(1, wanted))
            let first = 1 + Int64(Seed.base % UInt64(step))
            return stride(from: first, through: count, by: Int(step)).enumerated()
                .map { index, number in
                    Turn(
                        operation: operation,
                        number: number,
                        error: error,
                        manner: index.isMultiple(of: 2) ? [] : manner
                    )
                }
        }
    }

    /// Each sends two transactions, which share a commit or do not.
    private static let stepCount = 200

    /// What the run does where nothing fails.
    private static let operationCounts = Result { () throws -> [Faults.Operation: Int64] in
        var disk = try FailingDisk()
        let start = counts(on: disk.faults)
        while disk.stepCount < stepCount { try disk.step() }
        let end = counts(on: disk.faults)
        try disk.finish()
        guard disk.findings.isEmpty else { throw SystemFailure("\(disk.findings)") }
        return end.merging(start) { $0 - $1 }
    }

    private static func counts(on faults: Faults) -> [Faults.Operation: Int64] {
        Dictionary(
            uniqueKeysWithValues: Faults.Operation.allCases.map { ($0, faults.count(of: $0)) }
        )
    }

    private func run(_ turn: Turn, compacting: Bool = false) throws -> FailingDisk {
        var disk = try FailingDisk(compacting: compacting)
        disk.faults.fail(turn.operation, number: turn.number, with: turn.error, turn.manner)
        // How many commits share a sync is another number each time.
        while disk.stepCount < Self.stepCount
            || (disk.faults.failedCount == 0 && disk.stepCount < 1_000)
        {
            try disk.step()
            if !disk.findings.isEmpty { break }
        }
        #expect(disk.faults.failedCount == 1)
        try disk.finish()
        #expect(disk.backing.status.checkpointFailure == nil)
        return disk
    }

    @Test(arguments: Turn.each(.sync, EIO, .reverting))
    func `a failed sync is never success, and writes are taken again without a restart`(
        turn: Turn
    ) throws {
        let disk = try run(turn)
        #expect(disk.findings == [], "law: never silent about storage; \(turn.testDescription)")
        #expect(disk.errors.allSatisfy { $0.code == .readOnly }, "\(disk.errors)")
    }

    @Test(arguments: Turn.each(.write, ENOSPC, .short))
    func `a full disk undoes what it refuses, and is over with the next commit that succeeds`(
        turn: Turn
    ) throws {
        let disk = try run(turn)
        #expect(disk.findings == [], "law: atomic; \(turn.testDescription)")
        #expect(disk.errors.allSatisfy { $0.code == .noSpace }, "\(disk.errors)")
        #expect(disk.errors.count <= 2)
    }

    @Test(arguments: Turn.each(.write, EIO, .short))
    func `a write that fails is never success, and writes are taken again without a restart`(
        turn: Turn
    ) throws {
        let disk = try run(turn)
        #expect(disk.findings == [], "law: never silent about storage; \(turn.testDescription)")
        #expect(disk.errors.allSatisfy { $0.code == .readOnly }, "\(disk.errors)")
    }

    @Test(
        arguments: Turn.each(.write, EIO, .short) + Turn.each(.write, ENOSPC, .short)
            + Turn.each(.sync, EIO, .reverting)
    )
    func `the same while the history is compacted: nothing that was told is lost or in doubt`(
        turn: Turn
    ) throws {
        let disk = try run(turn, compacting: true)
        #expect(disk.findings == [], "law: never silent about storage; \(turn.testDescription)")
        #expect(try StoreCheck(store: disk.data) { Issue.record("\($0)") }.run().findingCount == 0)
    }

    @Test(arguments: [Faults.Operation.sync, .write])
    func `a checkpoint that fails is named, tried again, and costs nothing`(
        operation: Faults.Operation
    ) throws {
        var disk = try FailingDisk()
        disk.faults.fail(operation, of: .database, .lasting)
        while disk.faults.failedCount == 0, disk.stepCount < 500 { try disk.step() }
        // The checkpoint comes after the replies: the next commit is answered when it has ended.
        try disk.step()
        let law: Comment = "law: never silent about storage (a failed checkpoint is named)"
        #expect(disk.backing.status.checkpointFailure?.contains("checkpoint") == true, law)
        for _ in 0..<50 { try disk.step() }
        #expect(disk.faults.failedCount > 1, "it is not tried again")
        #expect(disk.backing.status.checkpointFailure != nil, law)
        #expect(disk.backing.status.logByteCount > 160 << 10)
        disk.faults.heal()
        for _ in 0..<50 { try disk.step() }
        #expect(disk.backing.status.checkpointFailure == nil)
        try disk.finish()
        #expect(disk.findings == [])
        #expect(disk.errors == [])
    }

    @Test(arguments: [Faults.Operation.sync, .write, .truncate])
    func `a stop on a disk that fails loses nothing that was told`(
        operation: Faults.Operation
    ) throws {
        var disk = try FailingDisk()
        for _ in 0..<30 { try disk.step() }
        disk.faults.fail(operation, .lasting)
        let told = disk.values
        disk.server.stop()
        #expect(disk.faults.failedCount > 0)
        disk.faults.heal()
        #expect(try StoredHistory(disk.data).values == told)
    }
}
