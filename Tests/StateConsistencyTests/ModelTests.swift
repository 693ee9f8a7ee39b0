import StateTestSupport
import Testing

/// The real daemon against a model in memory, across kills and stops.
struct ModelTests {
    /// `STATED_MODEL_STEPS` steps, or a short form, in two runs of different seeds.
    @Test(arguments: Seed.each(2))
    func `every answer, and everything after each restart, is what a dictionary says`(
        seed: UInt64
    ) throws {
        let run = try ModelRun(seed: seed)
        for _ in 0..<(number(ofEnvironment: "STATED_MODEL_STEPS") ?? 3_000) { try run.step() }
        print("model: seed \(seed), \(run.totals)")
        #expect(run.totals.kills > 0 && run.totals.stops > 0)
    }
}
