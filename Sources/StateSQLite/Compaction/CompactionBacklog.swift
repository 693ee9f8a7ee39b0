package import StateEngine
import Synchronization

/// How much waits for compaction; asked after each commit.
extension SQLiteBacking {
    /// While idle, a transaction is worth it from so many rows on.
    private static let worthwhileRowCount: Int64 = 4_096

    package var compactionNeed: CompactionNeed {
        var need = CompactionNeed()
        guard let open, pause.millisecondsLeft(clock) == 0 else { return need }
        let history = history
        open.cuts.limits = history
        lookForRules(open, &need)
        let backlog = backlog(of: open)
        gauges.note(backlogRowCount: backlog.rowCount)
        guard backlog.isAny else { return need }
        need.isAny = true
        // A quarter above the retention, so that ranges are long and the file stays bounded.
        let rowSlack = min(max(Int64(history.changeCount) / 4, 1_024), Int64(SweepPlan.rowLimit))
        let byteSlack = max(history.byteCount / 4, 1 << 20)
        need.isWorthwhile =
            need.isWorthwhile || open.sweep.isSweeping
            || compactionGoal.wantedRevision > open.sweep.compacted
            || backlog.rowCount >= min(rowSlack, SQLiteBacking.worthwhileRowCount)
            || backlog.byteCount >= byteSlack
        let isDue = backlog.rowCount > rowSlack || backlog.byteCount > byteSlack
        need.isDue = need.isDue || isDue
        let isUrgent = backlog.rowCount > 2 * rowSlack || backlog.byteCount > 2 * byteSlack
        need.isUrgent = need.isUrgent || isUrgent
        need.isOverdue = backlog.rowCount > 3 * rowSlack || backlog.byteCount > 3 * byteSlack
        return need
    }

    /// How much waits for the rules: rows that they have not read, and what is due.
    private func lookForRules(_ open: OpenStore, _ need: inout CompactionNeed) {
        let rules = rules
        guard rules != nil || open.hasRules else { return }
        use(rules, in: open)
        let rowCount = open.cuts.end.rowCount
        let unread = open.sweep.ruled.unreadRowCount(of: rowCount)
        let isDue = open.sweep.ruled.isDue(rowCount: rowCount, time: open.age)
        need.isAny = unread > 0 || isDue
        need.isWorthwhile = isDue || unread >= SQLiteBacking.worthwhileRowCount
        need.isDue = isDue || unread >= 4 * SQLiteBacking.worthwhileRowCount
        need.isUrgent = unread >= 32 * SQLiteBacking.worthwhileRowCount
    }

    /// Before rows are looked at.
    func use(_ rules: HistoryRules?, in open: OpenStore) {
        open.hasRules = open.hasRules || rules != nil
        open.sweep.ruled.keep(by: rules, versions)
        open.cuts.shortestAge = rules?.shortestAge
    }

    package var shortage: StateError? { open?.room.shortage }

    func target(in open: OpenStore) -> Int64 {
        guard !compactionGoal.isAsked else { return compactionGoal.wantedRevision }
        return max(open.cuts.retained(at: clock()).revision, compactionGoal.wantedRevision)
    }

    /// How much waits for compaction.
    private func backlog(of open: OpenStore) -> Backlog {
        let target = target(in: open)
        let sweep = open.sweep
        guard target > sweep.sweptRevision || sweep.isSweeping,
            compactionGoal.finished
                != CompactionGoal.Finished(target: target, newest: open.cuts.end.revision)
        else { return Backlog() }
        let (from, to) = (
            open.cuts.cut(through: sweep.sweptRevision), open.cuts.cut(through: target)
        )
        return Backlog(
            isAny: true,
            rowCount: max(0, to.rowCount - from.rowCount),
            byteCount: max(0, to.byteCount - from.byteCount)
        )
    }

    private struct Backlog {
        var isAny = false
        var rowCount: Int64 = 0
        var byteCount: Int64 = 0
    }
}

extension HistorySweep {
    /// Whether a range or a stretch is under way, or a stretch is due.
    var isSweeping: Bool {
        plan != nil || stretch != nil || sweepsAll || rows.isDue
    }

    /// All of it was looked at: of a transaction that a range ended in, the rest may not have been.
    var sweptRevision: Int64 { HistorySweep.revision(of: counted) }

    private static func revision(of place: HistoryPlace) -> Int64 {
        place.ordinal == .max ? place.revision : max(0, place.revision - 1)
    }
}

extension SweptRows {
    /// Whether there is a stretch to be swept.
    var isDue: Bool { dueCount > 0 || pass != nil || isHalfSuperseded || hasManyTombstones }

    /// Whether half of all rows are superseded, though perhaps not most of any stretch.
    var isHalfSuperseded: Bool {
        supersededCount >= rowLimit && supersededCount * 2 >= rowCount
    }

    /// Whether a quarter of all rows are tombstones that the last pass did not leave.
    ///
    /// Then all stretches are swept, in order.
    var hasManyTombstones: Bool {
        let count = tombstoneCount - heldCount
        return count >= rowLimit && count * 4 >= rowCount
    }
}

/// A pause of compaction, and how often something was removed: a backup reads the rows in pieces, and
/// a delete that left between two of them would bring back what it deleted.
final class CompactionPause: Sendable {
    /// On the clock of the history, in milliseconds.
    private let end = Atomic(Int64.min)
    private let removals = Atomic(0)

    /// The next piece of a backup begins another one.
    private static let milliseconds: Int64 = 60_000

    func begin(at time: Int64) {
        end.store(time + CompactionPause.milliseconds, ordering: .sequentiallyConsistent)
    }

    func finish() { end.store(.min, ordering: .sequentiallyConsistent) }

    /// The milliseconds until it ends by itself; 0 without a backup.
    func millisecondsLeft(_ clock: () -> Int64) -> Int64 {
        let end = end.load(ordering: .sequentiallyConsistent)
        return end > .min ? max(0, end - clock()) : 0
    }

    /// Odd while rows are being removed.
    var removalCount: Int { removals.load(ordering: .sequentiallyConsistent) }

    /// Called before and after rows are removed.
    func countRemoval() { removals.wrappingAdd(1, ordering: .sequentiallyConsistent) }
}
