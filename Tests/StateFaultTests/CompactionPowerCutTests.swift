import StateEngine
import StateSQLite
import StateTestSupport
import Testing

/// What is left where power fails while the history is being compacted.
@Suite(.serialized) struct CompactionPowerCutTests {
    private static let cutsARun = 25
    private static let runCount =
        (Extent.named("STATED_POWER_CUTS", short: 25) + cutsARun - 1) / cutsARun

    @Test(arguments: Seed.each(runCount), [false, true])
    func
        `durable before told: compaction leaves every value, and every change from its revision on`(
            seed: UInt64,
            movesAside: Bool
        ) throws
    {
        let run = try PowerCutRun(
            seed: seed,
            cutCount: Self.cutsARun,
            failing: false,
            compacting: true,
            movingAside: movesAside
        )
        #expect(run.problems == [])
        #expect(run.history.loaded.compacted > 100)
        let commits = run.told.filter(\.isWhole).sorted { $0.revision ?? 0 < $1.revision ?? 0 }
        for cut in run.cuts {
            let fault = try Self.fault(of: cut, run, commits)
            #expect(fault == nil, "law: durable before told, atomic; \(run.description(of: cut))")
        }
    }

    private static func fault(
        of cut: PowerCutRun.Cut,
        _ run: PowerCutRun,
        _ commits: [Told]
    ) throws -> String? {
        var findings: [String] = []
        _ = try StoreCheck(store: cut.directory) { findings.append($0) }.run()
        if let finding = findings.first { return "check: \(finding)" }
        let left = try StoredHistory(cut.directory)
        let last = left.rows.last?.revision ?? 0
        let told = run.told.filter { $0.place < cut.place }.compactMap(\.revision).max() ?? 0
        guard last >= told else { return "the last revision is \(last), told was \(told)" }
        let there = commits.filter { $0.revision ?? 0 <= last }
        var values: [String: String] = [:]
        for change in there.flatMap(\.changes) { values[change.key] = change.value }
        guard left.values == values else { return "other values than at revision \(last)" }
        let compacted = left.loaded.compacted
        let expected = there.filter { $0.revision ?? 0 > compacted }.flatMap(\.changes)
        let rows = left.rows.filter { $0.revision > compacted }
            .map { Told.Change(key: $0.key, value: $0.value) }
        guard rows == expected else { return "not every change after revision \(compacted)" }
        let served = try StoredHistory.served(from: cut.directory)
        return served == values ? nil : "what is served is not what is stored"
    }
}
