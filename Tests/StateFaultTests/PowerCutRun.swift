import StateEngine
import StateSQLite
import StateTestSupport

/// A server on which 8 clients write and one watches while power fails again and again.
struct PowerCutRun {
    let seed: UInt64
    let disk: CuttableDisk
    let told: [Told]
    let problems: [String]
    /// Syncs that failed.
    let failedCount: Int

    /// Runs until so many cuts were taken.
    ///
    /// Syncs fail now and then where `hasFailures` is set. Where `defers` is, storage may have the shared keys
    /// later than their writers.
    init(
        seed: UInt64,
        cutCount: Int,
        failing hasFailures: Bool,
        deferring defers: Bool = false
    ) throws {
        self.seed = seed
        let disk = try CuttableDisk(seed: seed)
        self.disk = disk
        let server = try ServedKeyspace(disk.backing())
        if defers {
            try server.keyspace.install(rules: deferringRules("shared/", every: .milliseconds(20)))
        }
        disk.cutPower(cutCount, eachWithin: 160, seed: seed)
        let deadline = ContinuousClock.now + .seconds(60)
        let load = Load(server.socketPath, on: disk.files, failing: hasFailures) {
            disk.cuts.count == cutCount || ContinuousClock.now > deadline
        }
        try load.run(writerCount: 8, seed: seed)
        server.stop()
        failedCount = disk.files.failedCount
        guard disk.cuts.count == cutCount else {
            throw SystemFailure("\(disk.cuts.count) of \(cutCount) power cuts were taken")
        }
        told = load.outcome.told
        problems = load.outcome.problems + disk.findings
    }

    /// How to see it again.
    func description(of cut: CuttableDisk.Cut) -> String {
        "power cut at call \(cut.place); STATED_TEST_SEED=\(seed) draws the same cuts"
    }
}
