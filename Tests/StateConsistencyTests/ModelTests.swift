import StateTestSupport
import Testing

/// The real daemon against a model in memory, across kills and stops.
struct ModelTests {
    /// `STATED_MODEL_STEPS` steps; without that, 3,000 or what a busy machine does in 4 seconds.
    @Test(arguments: Seed.each(2))
    func `every answer, and everything after each restart, is what a dictionary says`(
        seed: UInt64
    ) throws {
        let run = try ModelRun(seed: seed)
        let wanted = number(ofEnvironment: "STATED_MODEL_STEPS")
        let shortEnd = ContinuousClock.now + .seconds(4)
        for _ in 0..<(wanted ?? 3_000) where wanted != nil || ContinuousClock.now < shortEnd {
            try run.step()
        }
        print("model: seed \(seed), \(run.totals)")
        #expect(run.totals.commands < 1_000 || run.totals.kills > 0 && run.totals.stops > 0)
    }
}
