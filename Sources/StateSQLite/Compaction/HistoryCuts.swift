import StateEngine

/// Places where the history may be cut, each with how much lies before it: enough to find the end
/// of the retention without reading rows.
///
/// Age does not follow the wall clock, which may be set: a jump of a year would make all of the
/// history old at once. Age is CLOCK_BOOTTIME since the start. Before the start, it is the sum of
/// the gaps between the times of neighbouring rows, each at most an eighth of the retention. So
/// neither a jump nor a long time without a daemon makes much of the history old.
///
/// A cut is made every so many rows, bytes and milliseconds, always between two revisions: each a
/// thousandth of the retention, so there are about a thousand cuts, at most ``limit``. Commits make
/// them, and a start that reads the rows.
struct HistoryCuts {
    /// How much there was up to a revision.
    struct Cut: Hashable {
        var revision: Int64
        /// Rows since the first that was counted.
        var rowCount: Int64 = 0
        /// Their bytes.
        var byteCount: Int64 = 0
        /// The age of the history when the last of them was written, in milliseconds.
        var time: Int64 = 0
    }

    /// The most cuts that are kept; above it, every other one is dropped.
    static let limit = 8_192

    /// The bytes of a row beside its key, value and cause.
    static let rowByteCount: Int64 = 64

    private(set) var cuts: [Cut] = []
    /// The newest row.
    private(set) var end: Cut
    /// The place before the first row that is counted.
    private(set) var start: Cut

    /// The age of the history at `boottime`, in milliseconds.
    private var lived: Int64 = 0
    /// CLOCK_BOOTTIME in milliseconds; 0 while a start reads the rows.
    private var boottime: Int64 = 0
    /// The time of the last row that a start has read, in milliseconds since 1970.
    private var lastTime: Int64?

    /// A change does not move the cuts that exist.
    var limits: HistoryLimits {
        didSet { if limits != oldValue { spacing = Spacing(limits, shortestAge) } }
    }
    /// The shortest age that a rule keeps; nil if no rule has one.
    var shortestAge: Duration? {
        didSet { if shortestAge != oldValue { spacing = Spacing(limits, shortestAge) } }
    }
    private var spacing: Spacing

    /// The distances that follow from the limits.
    private struct Spacing {
        let rowCount: Int64
        let byteCount: Int64
        let milliseconds: Int64
        let ageMilliseconds: Int64
        /// The most that a gap between two rows counts.
        let longestGap: Int64

        init(_ limits: HistoryLimits, _ shortestAge: Duration? = nil) {
            // Without a history, the end counts: a cut for each row would only take time.
            rowCount = limits.changeCount == 0 ? 64 : max(1, Int64(limits.changeCount) / 1_024)
            byteCount = max(1, limits.byteCount / 1_024)
            ageMilliseconds = limits.age.milliseconds
            let shortest = shortestAge?.milliseconds ?? .max
            milliseconds = max(1, min(ageMilliseconds / 1_024, shortest / 64))
            longestGap = max(1_000, ageMilliseconds / 8)
        }
    }

    /// Begins after the compacted revision.
    init(_ limits: HistoryLimits, after revision: Int64) {
        self.limits = limits
        spacing = Spacing(limits)
        start = Cut(revision: revision)
        end = start
    }

    /// Counts the next row that a start reads.
    mutating func read(_ change: borrowing StoredChange) {
        pass(to: change.time)
        count(change)
    }

    /// Ends reading: from now on, time is CLOCK_BOOTTIME.
    ///
    /// - Parameters:
    ///   - wallTime: Milliseconds since 1970.
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    mutating func finishReading(at wallTime: Int64, boottime now: Int64) {
        pass(to: wallTime)
        boottime = now
    }

    /// Counts the next row, which is written at `now`, in milliseconds of CLOCK_BOOTTIME.
    mutating func take(_ change: borrowing StoredChange, at now: Int64) {
        lived += max(0, now - boottime)
        boottime = now
        count(change)
    }

    private mutating func pass(to time: Int64) {
        let gap = time.subtractingReportingOverflow(lastTime ?? time)
        if !gap.overflow { lived += min(max(0, gap.partialValue), spacing.longestGap) }
        lastTime = time
    }

    private mutating func count(_ change: borrowing StoredChange) {
        if change.revision != end.revision { cutEnd(before: lived) }
        end.revision = change.revision
        end.rowCount += 1
        end.byteCount +=
            Int64(change.key.count + (change.value?.count ?? 0) + change.cause.count)
            + HistoryCuts.rowByteCount
        end.time = lived
    }

    private mutating func cutEnd(before time: Int64) {
        let last = cuts.last ?? start
        guard end.rowCount > last.rowCount else { return }
        let isDue =
            end.rowCount - last.rowCount >= spacing.rowCount
            || end.byteCount - last.byteCount >= spacing.byteCount
            || time - last.time >= spacing.milliseconds
        guard isDue else { return }
        cuts.append(end)
        if cuts.count > HistoryCuts.limit {
            cuts = cuts.enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
        }
    }

    /// Drops the cuts up to a compacted revision.
    mutating func drop(through revision: Int64) {
        let count = cuts.partitioningIndex { $0.revision > revision }
        guard count > 0 else { return }
        start = cuts[count - 1]
        cuts.removeFirst(count)
    }

    /// The newest place after which all limits are reached, at `now` milliseconds of
    /// CLOCK_BOOTTIME; the history before it need not be kept.
    ///
    /// - Complexity: O(log *n*) in the cuts.
    func retained(at now: Int64) -> Cut {
        var best = start
        func take(_ count: Int, _ isReachedAtEnd: Bool) {
            if isReachedAtEnd {
                best = end
            } else if count > 0, cuts[count - 1].rowCount > best.rowCount {
                best = cuts[count - 1]
            }
        }
        let (changeCount, byteCount) = (Int64(limits.changeCount), limits.byteCount)
        take(cuts.partitioningIndex { end.rowCount - $0.rowCount < changeCount }, changeCount == 0)
        take(cuts.partitioningIndex { end.byteCount - $0.byteCount < byteCount }, byteCount == 0)
        let oldest = age(at: now) - spacing.ageMilliseconds
        let oldCount = cuts.partitioningIndex { $0.time > oldest }
        take(oldCount, oldCount == cuts.count && end.time <= oldest)
        return best
    }

    /// The age of the history at `now` milliseconds of CLOCK_BOOTTIME.
    func age(at now: Int64) -> Int64 { lived + max(0, now - boottime) }

    /// The age of the history when a revision was written, rounded up to a cut.
    func time(of revision: Int64) -> Int64 {
        let count = cuts.partitioningIndex { $0.revision >= revision }
        return count < cuts.count ? cuts[count].time : end.time
    }

    /// How much there was up to `revision`, rounded down to a cut.
    func cut(through revision: Int64) -> Cut {
        if revision >= end.revision { return end }
        let count = cuts.partitioningIndex { $0.revision > revision }
        return count > 0 ? cuts[count - 1] : start
    }
}

extension Duration {
    /// Rounded down; the largest number if it is too long.
    fileprivate var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let product = seconds.multipliedReportingOverflow(by: 1_000)
        return product.overflow
            ? .max : product.partialValue + attoseconds / 1_000_000_000_000_000
    }
}
