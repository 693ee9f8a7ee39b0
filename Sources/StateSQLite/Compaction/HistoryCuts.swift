import StateEngine

/// Where the history may be cut, and how much lies behind each such place: enough to say where the retention ends, without a
/// look at the rows.
///
/// Age is time that was lived through, not what the wall clock says: that may be set, and a year forward would make everything old
/// at once, a commit under a clock that ran ahead everything after it young for a year. It is CLOCK_BOOTTIME since the start, and
/// before that what lies between each row and the next by their own times, an eighth of what is kept at most: so neither a jump nor
/// a long time without a daemon makes much of the history old, and only a little of it stays longer.
///
/// A cut is set every so many rows, bytes and milliseconds, always between two revisions: a thousandth of what is kept, so that
/// there are about a thousand, and at most ``limit``. They are made while rows are written and while a start reads them.
struct HistoryCuts {
    /// How much there was up to a revision.
    struct Cut: Hashable {
        var revision: Int64
        /// Rows since the first that was counted.
        var rowCount: Int64 = 0
        /// Their bytes.
        var byteCount: Int64 = 0
        /// When the last of them was written, in milliseconds that the history had lived through by then.
        var time: Int64 = 0
    }

    /// At most so many cuts are kept; beyond it every other one goes.
    static let limit = 8_192

    /// What a row takes beside key, value and cause.
    static let rowByteCount: Int64 = 64

    private(set) var cuts: [Cut] = []
    /// The newest row.
    private(set) var end: Cut
    /// Where the first row to be counted comes after.
    private(set) var start: Cut

    /// Milliseconds that were lived through until `boottime`.
    private var lived: Int64 = 0
    /// Milliseconds of CLOCK_BOOTTIME; 0 while a start reads the rows.
    private var boottime: Int64 = 0
    /// When the last row was written that a start has read, in milliseconds since 1970.
    private var lastTime: Int64?

    /// Cuts that are set already stay where they are.
    var limits: HistoryLimits {
        didSet { if limits != oldValue { spacing = Spacing(limits) } }
    }
    private var spacing: Spacing

    /// What follows from the limits.
    private struct Spacing {
        let rowCount: Int64
        let byteCount: Int64
        let milliseconds: Int64
        let ageMilliseconds: Int64
        /// As much counts of what lies between two rows.
        let longestGap: Int64

        init(_ limits: HistoryLimits) {
            rowCount = max(1, Int64(limits.changeCount) / 1_024)
            byteCount = max(1, limits.byteCount / 1_024)
            let (seconds, attoseconds) = limits.age.components
            let product = seconds.multipliedReportingOverflow(by: 1_000)
            ageMilliseconds =
                product.overflow
                ? .max : product.partialValue + attoseconds / 1_000_000_000_000_000
            milliseconds = max(1, ageMilliseconds / 1_024)
            longestGap = max(1_000, ageMilliseconds / 8)
        }
    }

    /// Begins behind what was compacted.
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

    /// All rows were read: from now on time is that of CLOCK_BOOTTIME.
    ///
    /// - Parameters:
    ///   - wallTime: Milliseconds since 1970.
    ///   - now: Milliseconds of CLOCK_BOOTTIME.
    mutating func finishReading(at wallTime: Int64, boottime now: Int64) {
        pass(to: wallTime)
        boottime = now
    }

    /// Counts the next row, which is written now, in milliseconds of CLOCK_BOOTTIME.
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

    /// Forgets the cuts up to a revision, which was compacted.
    mutating func drop(through revision: Int64) {
        let count = cuts.partitioningIndex { $0.revision > revision }
        guard count > 0 else { return }
        start = cuts[count - 1]
        cuts.removeFirst(count)
    }

    /// The newest place beyond which all limits are reached, at `now` milliseconds of CLOCK_BOOTTIME: what comes before need not be
    /// kept.
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
        let oldest = lived + max(0, now - boottime) - spacing.ageMilliseconds
        let oldCount = cuts.partitioningIndex { $0.time > oldest }
        take(oldCount, oldCount == cuts.count && end.time <= oldest)
        return best
    }

    /// How much there was up to `revision`, as far as the cuts tell.
    func cut(through revision: Int64) -> Cut {
        if revision >= end.revision { return end }
        let count = cuts.partitioningIndex { $0.revision > revision }
        return count > 0 ? cuts[count - 1] : start
    }
}
