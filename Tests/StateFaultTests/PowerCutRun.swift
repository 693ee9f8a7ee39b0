import StateEngine
import StateSQLite
import StateTestSupport

/// A server on which 8 clients write and one watches, with small logs, while power fails again and again.
///
/// The disk's image is copied at each cut and the server goes on, so one run gives many.
struct PowerCutRun {
    struct Cut {
        var place: Int64
        var directory: String
    }

    let seed: UInt64
    let cuts: [Cut]
    let told: [Told]
    let problems: [String]
    /// Syncs that failed.
    let failedCount: Int64
    /// What the store holds in the end, which is all that ever was in it.
    let history: StoredHistory
    private let directory: TemporaryDirectory

    /// Runs until so many cuts were taken.
    ///
    /// Syncs fail now and then where `hasFailures` is set, the history is compacted all the time where `compacts` is, and the log is
    /// moved beside the commits where `movesAside` is: then the writes come in another order each time. Where `defers` is, storage
    /// may have the shared keys later than their writers.
    init(
        seed: UInt64,
        cutCount: Int,
        failing hasFailures: Bool,
        compacting compacts: Bool = false,
        movingAside movesAside: Bool = false,
        deferring defers: Bool = false
    ) throws {
        self.seed = seed
        let directory = try TemporaryDirectory()
        self.directory = directory
        let data = directory.path(of: "data")
        let faults = try Faults(below: data)
        var limits = LogLimits()
        limits.movesAside = movesAside
        // So that sweeps take several transactions, and some rows of each stretch stay.
        limits.stretchRowCount = 8
        limits.checkpointByteCount = 160 << 10
        limits.keptByteCount = 320 << 10
        let server = try ServedKeyspace(SQLiteBacking(directory: data, logLimits: limits))

        if defers {
            try server.keyspace.install(rules: deferringRules("shared/", every: .milliseconds(20)))
        }

        var random = SplitMix(seed: seed)
        var planned: [Cut] = []
        var place = faults.place
        func cut(after gap: Int64) throws {
            place += gap
            let cut = Cut(place: place, directory: directory.path(of: "cut-\(planned.count)"))
            try faults.cutPower(at: place, leaving: cut.directory, seed: random.next())
            planned.append(cut)
        }
        for _ in 1..<cutCount { try cut(after: Int64.random(in: 1...160, using: &random)) }

        let deadline = ContinuousClock.now + .seconds(60)
        let load = Load(server.socketPath, on: faults, failing: hasFailures) {
            faults.cutCount == Int64(cutCount - 1) || ContinuousClock.now > deadline
        }
        let keyspace = server.keyspace
        if compacts { load.alsoRun { try PowerCutRun.compact(keyspace) } }
        try load.run(writerCount: 8, seed: seed)
        // The last one while it stops.
        place = faults.place
        try cut(after: Int64.random(in: 1...8, using: &random))
        server.stop()
        failedCount = faults.failedCount
        // If a stop has fewer operations than that, the next start goes on with them.
        history = try StoredHistory(data)
        guard faults.cutCount == Int64(cutCount) else {
            throw SystemFailure("\(faults.cutCount) of \(cutCount) power cuts were taken")
        }
        cuts = planned
        (told, problems) = load.outcome
    }

    /// Some part of what is superseded, now and then all.
    private static func compact(_ keyspace: LocalKeyspace) throws {
        let revision = keyspace.revision
        try keyspace.compact(to: revision % 5 == 0 ? revision : revision - revision / 8)
    }

    /// How to see it again.
    func description(of cut: Cut) -> String {
        "power cut at operation \(cut.place); STATED_TEST_SEED=\(seed) draws the same cuts"
    }
}
