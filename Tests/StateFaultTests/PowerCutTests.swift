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
        let run = try PowerCutRun(seed: seed, cutCount: Self.cutsARun)
        let bounds = ToldBounds(run.told, in: run.history)
        #expect(run.problems == [])
        #expect(bounds.faults.prefix(5) == [])
        #expect(run.told.count > 500)
        for cut in run.cuts {
            let fault = try Self.fault(of: cut, run, bounds)
            #expect(fault == nil, "law: durable before told, atomic; \(run.description(of: cut))")
        }
    }

    /// What is wrong with what a cut has left; nil where nothing is.
    private static func fault(
        of cut: PowerCutRun.Cut,
        _ run: PowerCutRun,
        _ bounds: ToldBounds
    ) throws -> String? {
        let left: StoredHistory
        do {
            left = try StoredHistory(cut.directory)
        } catch let error as StateError {
            return "the store is refused: \(error)"
        }
        let rows = run.history.rows
        let told = bounds.told(before: cut.place)
        let count = left.rows.count
        guard left.rows == Array(rows.prefix(count)) else {
            return "the rows are not those that were committed first"
        }
        if count > 0, count < rows.count, rows[count - 1].revision == rows[count].revision {
            return "commit \(rows[count].revision) is split after \(count) rows"
        }
        guard count >= told.rowCount else {
            return "\(count) rows are left, told were \(told.rowCount)"
        }
        // It is a copy to the store: another epoch, and revisions above all that were told.
        guard left.loaded.revision >= told.revision + 1 << 32,
            left.loaded.epoch != run.history.loaded.epoch
        else {
            return "revision \(left.loaded.revision), told was \(told.revision)"
        }
        let served = try StoredHistory.served(from: cut.directory)
        return served == left.values ? nil : "what is served is not what is stored"
    }
}
