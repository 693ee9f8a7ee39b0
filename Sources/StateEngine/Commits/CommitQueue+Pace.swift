import CLinux

extension CommitQueue {
    /// How many transactions the next commit may expect, and until when it waits for them.
    ///
    /// Where the sync is slow, writers that were just answered are worth a short wait: else they fall into two groups that take
    /// turns, and each waits for two syncs. Where a commit is mostly work, the two groups are what keeps both threads busy:
    /// one group of 800 took 237,000 SETs a second where the loop and the commit together allow 400,000.
    struct Pace {
        var expectedCount = 0
        var until: Int64 = 0

        init() {}

        init(after count: Int, waiting: Int, took duration: Int64, at end: Int64) {
            expectedCount = count + waiting
            let isMostlySync = duration > Int64(count) * 10_000
            if isMostlySync { until = end + min(duration, 4_000_000) / 4 }
        }
    }
}
