import StateTestSupport
import Testing

/// The real daemon against a model in memory, across kills and stops.
struct ModelTests {
    /// `STATED_MODEL_STEPS` steps, however long they take.
    @Test(arguments: Seed.each(2))
    func `every answer, and everything after each restart, is what a dictionary says`(
        seed: UInt64
    ) throws {
        let run = try ModelRun(seed: seed)
        let count = Extent.named("STATED_MODEL_STEPS", short: 1_200)
        for _ in 0..<count { try run.step() }
        print("model: seed \(seed), \(run.totals)")
        // One step in 30 kills it, and one in 100 stops it.
        #expect(count < 1_000 || run.totals.kills > 0 && run.totals.stops > 0)
        #expect(run.totals.commands >= count)
    }
}
