import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What is left where power fails, at any point: what was synced, and any of the rest.
@Suite(.serialized) struct PowerCutTests {
    private static let cutsARun = 25
    private static let runCount =
        (Extent.named("STATED_POWER_CUTS", short: 25) + cutsARun - 1) / cutsARun

    @Test(arguments: Seed.each(runCount), [false, true])
    func `durable before told: after a power cut everything that was told is there, and whole`(
        seed: UInt64,
        movesAside: Bool
    ) throws {
        let run = try PowerCutRun(
            seed: seed,
            cutCount: Self.cutsARun,
            failing: false,
            movingAside: movesAside
        )
        #expect(run.told.count > 500)
        try check(run)
    }

    @Test(arguments: Seed.each(runCount), [false, true])
    func `the same where syncs fail between the cuts, and the store is opened anew`(
        seed: UInt64,
        movesAside: Bool
    ) throws {
        let run = try PowerCutRun(
            seed: seed,
            cutCount: Self.cutsARun,
            failing: true,
            movingAside: movesAside
        )
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
            movingAside: seed % 2 == 0,
            deferring: true
        )
        #expect(run.told.count > 500)
        try check(run, deferring: { $0.hasPrefix("shared/") })
    }

    private func check(
        _ run: PowerCutRun,
        deferring mayDefer: (String) -> Bool = { _ in false }
    ) throws {
        let bounds = ToldBounds(run.told, in: run.history, deferring: mayDefer)
        #expect(run.problems == [])
        #expect(bounds.faults.prefix(5) == [])
        for cut in run.cuts {
            let fault = try Self.fault(of: cut, run, bounds, mayDefer)
            #expect(fault == nil, "law: durable before told, atomic; \(run.description(of: cut))")
        }
    }

    /// What is wrong with what a cut has left; nil where nothing is.
    private static func fault(
        of cut: PowerCutRun.Cut,
        _ run: PowerCutRun,
        _ bounds: ToldBounds,
        _ mayDefer: (String) -> Bool
    ) throws -> String? {
        let left: StoredHistory
        do {
            left = try StoredHistory(cut.directory)
        } catch let error as StateError {
            return "the store is refused: \(error)"
        }
        let rows = run.history.rows
        let told = bounds.told(before: cut.place)
        let count = zip(left.rows, rows).prefix { $0 == $1 }.count
        let rest = left.rows.dropFirst(count)
        if let fault = fault(of: rest, after: rows.prefix(count), run, mayDefer) { return fault }
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
        // What is served is what is stored.
        let served = try StoredHistory.served(from: cut.directory)
        return served == left.values ? nil : "what is served is not what is stored"
    }
    /// Behind what was committed there can be what was on its way to disk and then failed, which nobody was told of: all of it
    /// in one transaction of the store, and so all of its revisions are new; but for what storage may have later, which no
    /// failure undoes.
    private static func fault(
        of rest: ArraySlice<StoredHistory.Row>,
        after committed: ArraySlice<StoredHistory.Row>,
        _ run: PowerCutRun,
        _ mayDefer: (String) -> Bool
    ) -> String? {
        guard let first = rest.first else { return nil }
        let revisions = Set(run.history.rows.map(\.revision))
        let isNew = rest.allSatisfy { row in
            !revisions.contains(row.revision) || mayDefer(row.key) && run.history.rows.contains(row)
        }
        guard run.failedCount > 0, isNew, first.revision > committed.last?.revision ?? 0 else {
            return "the rows are not those that were committed first: \(first)"
        }
        return nil
    }
}
