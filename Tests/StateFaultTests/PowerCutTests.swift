import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What is left where power fails, at any point: what was synced, and any of the rest.
@Suite(.serialized) struct PowerCutTests {
    private static let cutsARun = 25
    private static let runCount =
        (Extent.named("STATED_POWER_CUTS", short: 25) + cutsARun - 1) / cutsARun

    @Test(arguments: Seed.each(runCount))
    func `durable before told: after a power cut everything that was told is there, and whole`(
        seed: UInt64
    ) throws {
        let run = try PowerCutRun(seed: seed, cutCount: Self.cutsARun, failing: false)
        #expect(run.told.count > 500)
        try check(run)
    }

    @Test(arguments: Seed.each(runCount))
    func `the same where syncs fail between the cuts`(seed: UInt64) throws {
        let run = try PowerCutRun(seed: seed, cutCount: Self.cutsARun, failing: true)
        #expect(run.failedCount > 5)
        try check(run)
    }

    @Test(arguments: Seed.each(runCount), [false, true])
    func `what storage may have later is left in order, and with all that was told to be stored`(
        seed: UInt64,
        hasFailures: Bool
    ) throws {
        let run = try PowerCutRun(
            seed: seed,
            cutCount: Self.cutsARun,
            failing: hasFailures,
            deferring: true
        )
        #expect(run.told.count > 500)
        try check(run, deferring: { $0.hasPrefix("shared/") })
    }

    private func check(
        _ run: PowerCutRun,
        deferring mayDefer: (String) -> Bool = { _ in false }
    ) throws {
        let history = try run.disk.history()
        let bounds = ToldBounds(run.told, in: history, deferring: mayDefer)
        #expect(run.problems == [])
        #expect(bounds.faults.prefix(5) == [])
        for cut in run.disk.cuts {
            let fault = try Self.fault(of: cut, run, history, bounds)
            #expect(fault == nil, "law: durable before told, atomic; \(run.description(of: cut))")
        }
    }

    /// What is wrong with what a cut has left; nil where nothing is.
    private static func fault(
        of cut: CuttableDisk.Cut,
        _ run: PowerCutRun,
        _ history: StoredHistory,
        _ bounds: ToldBounds
    ) throws -> String? {
        let left: StoredHistory
        do {
            left = try run.disk.left(by: cut)
        } catch let error as StateError {
            return "the store is refused: \(error)"
        }
        let told = bounds.told(before: cut.place)
        let count = zip(left.rows, history.rows).prefix { $0 == $1 }.count
        if let first = left.rows.dropFirst(count).first {
            return "the rows are not those that were committed first: \(first)"
        }
        if count > 0, count < history.rows.count,
            history.rows[count - 1].revision == history.rows[count].revision
        {
            return "commit \(history.rows[count].revision) is split after \(count) rows"
        }
        guard count >= told.rowCount else {
            return "\(count) rows are left, told were \(told.rowCount)"
        }
        guard left.revision >= told.revision, left.epoch == history.epoch else {
            return "revision \(left.revision), told was \(told.revision)"
        }
        let values = StoredHistory.values(after: left.rows)
        return left.values == values ? nil : "what is served is not what is stored"
    }
}
