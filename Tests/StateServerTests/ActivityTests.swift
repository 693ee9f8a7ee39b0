import StateServer
import Testing

/// The counts of STATE.TOP, with a clock that is advanced by hand.
struct ActivityTests {
    private func counts(
        of names: [String],
        every step: Int64,
        until end: Int64,
        in counts: inout ActivityCounts,
        from start: Int64 = 0
    ) {
        for time in stride(from: start, to: end, by: Int(step)) {
            let weight = counts.weight(at: time)
            for name in names { counts.add(Array(name.utf8), 10, weighing: weight) }
        }
    }

    @Test(arguments: [100, 1_000, 60_000, 3_000_000])
    func `a steady rate is what it is from the beginning on`(end: Int64) throws {
        var counts = ActivityCounts(at: 0)
        self.counts(of: ["a"], every: 10, until: end, in: &counts)
        let row = try #require(counts.rows(1, at: end).first)
        #expect(abs(row.changesPerSecond - 100) < 2 && abs(row.bytesPerSecond - 1_000) < 20)
        #expect(row.count.changes == end / 10 && row.count.bytes == end)
    }

    @Test func `what changed long ago is behind what changes now, and its rate is 0`() {
        var counts = ActivityCounts(at: 0)
        let old = (0..<150).map { "old\($0)" }
        self.counts(of: old, every: 10, until: 1_000, in: &counts)
        self.counts(of: ["new"], every: 500, until: 30_000, in: &counts, from: 20_000)
        let rows = counts.rows(100, at: 30_000)
        #expect(rows.count == 100 && rows[0].name == Array("new".utf8))
        #expect(abs(rows[0].changesPerSecond - 2) < 0.5 && rows[1].changesPerSecond < 0.001)
        #expect(counts.rows(100, at: 3_000_000)[0].changesPerSecond == 0)
    }

    @Test func `those that are forgotten are the least busy at present`() {
        var counts = ActivityCounts(at: 0)
        let old = (0..<ActivityCounts.limit).map { "old\($0)" }
        self.counts(of: old, every: 10, until: 100, in: &counts)
        let new = (0..<ActivityCounts.limit).map { "new\($0)" }
        self.counts(of: new, every: 10_000, until: 10_001, in: &counts, from: 10_000)
        self.counts(of: ["last"], every: 10_000, until: 20_001, in: &counts, from: 20_000)
        let rows = counts.rows(3 * ActivityCounts.limit, at: 20_000)
        #expect(rows.count == ActivityCounts.limit + 1)
        #expect(rows.allSatisfy { !$0.name.starts(with: "old".utf8) })
    }

    @Test func `counting ends 10 s after the last question`() {
        var counting = ActivityCounting(at: 5_000)
        #expect(!counting.isOver(at: 15_000) && counting.isOver(at: 15_001))
        counting.askedAt = 15_000
        #expect(!counting.isOver(at: 25_000) && counting.isOver(at: 25_001))
    }
}
