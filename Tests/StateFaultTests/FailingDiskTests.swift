import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport
import Testing

/// Each call for the log of a run of 200 commits and more in turn fails, once.
@Suite(.serialized) struct FailingDiskTests {
    /// A call of the run, and how it fails.
    struct Turn: CustomTestStringConvertible, Sendable {
        var call: FaultyFiles.Call
        var number: Int
        var error: Int32
        var isTorn: Bool

        var testDescription: String {
            "\(call) \(number): \(String(cString: strerror(error)))"
        }

        /// Every call of a kind, or as many of them as `STATED_DISK_TURNS` says, spread over the run from a random one.
        static func each(_ call: FaultyFiles.Call, _ error: Int32) -> [Turn] {
            let wanted = Extent.named("STATED_DISK_TURNS", short: 8)
            let count = (try? callCounts.get()[call]) ?? 1
            let step = max(1, count / max(1, wanted))
            let first = 1 + Int(Seed.base % UInt64(step))
            return stride(from: first, through: count, by: step).enumerated().map { index, number in
                Turn(call: call, number: number, error: error, isTorn: index.isMultiple(of: 2))
            }
        }
    }

    /// Each sends two transactions, which share a commit or do not.
    private static let stepCount = 200

    /// What the run does where nothing fails.
    private static let callCounts = Result { () throws -> [FaultyFiles.Call: Int] in
        var disk = try FailingDisk()
        let start = counts(on: disk.files)
        while disk.stepCount < stepCount { try disk.step() }
        let end = counts(on: disk.files)
        try disk.finish()
        guard disk.findings.isEmpty else { throw SystemFailure("\(disk.findings)") }
        return end.merging(start) { $0 - $1 }
    }

    private static func counts(on files: FaultyFiles) -> [FaultyFiles.Call: Int] {
        Dictionary(
            uniqueKeysWithValues: FaultyFiles.Call.allCases.map { ($0, files.count(of: $0)) }
        )
    }

    private func run(_ turn: Turn) throws -> FailingDisk {
        var disk = try FailingDisk()
        disk.files.fail(turn.call, number: turn.number, with: turn.error, isTorn: turn.isTorn)
        // How many commits share a sync is another number each time.
        while disk.stepCount < Self.stepCount
            || (disk.files.failedCount == 0 && disk.stepCount < 1_000)
        {
            try disk.step()
            if !disk.findings.isEmpty { break }
        }
        #expect(disk.files.failedCount == 1)
        try disk.finish()
        #expect(disk.backing.status.failure == nil)
        return disk
    }

    @Test(arguments: Turn.each(.sync, EIO) + Turn.each(.write, EIO) + Turn.each(.other, EIO))
    func `a call that fails is never success, and nobody is refused for it`(turn: Turn) throws {
        let disk = try run(turn)
        #expect(disk.findings == [], "law: never silent about storage; \(turn.testDescription)")
        #expect(disk.errors == [])
    }

    @Test(arguments: Turn.each(.write, ENOSPC))
    func `a full disk undoes what it refuses, and is over with the next commit that succeeds`(
        turn: Turn
    ) throws {
        let disk = try run(turn)
        #expect(disk.findings == [], "law: atomic; \(turn.testDescription)")
        #expect(disk.errors.allSatisfy { $0.code == .noSpace }, "\(disk.errors)")
        #expect(disk.errors.count <= 2)
    }

    @Test func `atomic: what cannot be stored for long is undone, and reads have what was told`()
        throws
    {
        var disk = try FailingDisk(patience: 100_000_000)
        for _ in 0..<20 { try disk.step() }
        for call in [FaultyFiles.Call.write, .sync] {
            disk.files.fail(call, isLasting: true)
            try disk.refusedStep()
            disk.files.heal()
            for _ in 0..<20 { try disk.step() }
        }
        try disk.finish()
        #expect(disk.findings == [])
        #expect(!disk.errors.isEmpty && disk.errors.allSatisfy { $0.code == .readOnly })
    }

    @Test(arguments: [Faults.Operation.sync, .write])
    func `settling that fails is named, tried again, and costs nothing`(
        operation: Faults.Operation
    ) throws {
        var disk = try FailingDisk()
        disk.faults.fail(operation, .lasting)
        // It is tried again a second later at first.
        let deadline = time(nil) + 20
        while disk.faults.failedCount < 2, time(nil) < deadline {
            if disk.stepCount < 1_000 { try disk.step() } else { usleep(10_000) }
        }
        let law: Comment = "law: never silent about storage (settling that failed is named)"
        #expect(eventually { disk.backing.status.failure != nil }, law)
        #expect(disk.faults.failedCount > 1, "it is not tried again")
        for _ in 0..<50 { try disk.step() }
        disk.faults.heal()
        for _ in 0..<50 { try disk.step() }
        #expect(eventually { disk.backing.status.failure == nil })
        try disk.finish()
        #expect(disk.findings == [])
        #expect(disk.errors == [])
    }

    @Test(arguments: FaultyFiles.Call.allCases)
    func `a stop on a disk that fails loses nothing that was told`(
        call: FaultyFiles.Call
    ) throws {
        var disk = try FailingDisk()
        for _ in 0..<30 { try disk.step() }
        disk.files.fail(call, isLasting: true)
        if call == .sync { disk.faults.fail(.sync, .lasting) }
        let told = disk.values
        disk.server.stop()
        #expect(disk.files.failedCount > 0 || disk.faults.failedCount > 0)
        disk.files.heal()
        disk.faults.heal()
        #expect(try StoredHistory(disk.data).values == told)
    }
}
