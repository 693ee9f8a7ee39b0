package import StateEngine
import Synchronization

/// Where compaction found nothing more to do: until more is wanted or there is more.
struct FinishedCompaction: Equatable {
    var target: Int64
    var newest: Int64
}

extension SQLiteBacking: CompactingBacking {
    /// From so many rows on it is worth a transaction while nothing else is to be done.
    private static let worthwhileRowCount: Int64 = 4_096

    package var compactionNeed: CompactionNeed {
        var need = CompactionNeed()
        guard let open else { return need }
        let history = history
        open.marks.limits = history
        let backlog = backlog(of: open)
        need.isAny = backlog.isAny
        gauges.note(backlogRowCount: backlog.rowCount)
        guard backlog.isAny else { return need }
        // A quarter more than what is kept, so that ranges are long and a file does not grow without end.
        let rowSlack = min(max(Int64(history.changeCount) / 4, 1_024), Int64(SweepPlan.rowLimit))
        let byteSlack = max(history.byteCount / 4, 1 << 20)
        need.isWorthwhile =
            open.sweep.isSweeping || wantedRevision > open.sweep.compacted
            || backlog.rowCount >= min(rowSlack, SQLiteBacking.worthwhileRowCount)
            || backlog.byteCount >= byteSlack
        need.isDue = backlog.rowCount > rowSlack || backlog.byteCount > byteSlack
        need.isUrgent = backlog.rowCount > 2 * rowSlack || backlog.byteCount > 2 * byteSlack
        return need
    }

    package var shortage: StateError? { open?.room.shortage }

    package func lookForRoom() {
        inTurn {
            guard let open else { return }
            open.room.reserveByteCount = reserveByteCount
            if open.room.shortage != nil, !open.log.isMoved { open.checkpoint() }
            open.lookForRoom()
        }
    }

    package func raiseCompaction(to revision: Int64) {
        wantedRevision = max(wantedRevision, revision)
    }

    package func compact(while goesOn: () -> Bool) throws(StateError) -> CompactionStep {
        try inTurn { () throws(StateError) in try compactNow(while: goesOn) }
    }

    private func compactNow(while goesOn: () -> Bool) throws(StateError) -> CompactionStep {
        let open = try openStore()
        let target = max(target(in: open), open.sweep.compacted)
        do {
            let step = try open.compact(through: target, while: goesOn)
            finishedCompaction =
                step.isDone
                ? FinishedCompaction(target: target, newest: open.marks.end.revision) : nil
            gauges.note(open)
            if !open.sweep.isSweeping { gauges.note(freeByteCount: try open.freeByteCount()) }
            gauges.note(failure: nil)
            return step
        } catch {
            let error = stateError(error)
            gauges.note(failure: error.message)
            throw error
        }
    }

    package func syncCompaction() throws(StateError) {
        try inTurn { () throws(StateError) in
            let open = try openStore()
            do { try open.syncCompaction() } catch { throw stateError(error) }
        }
    }

    package func shrink() throws(StateError) -> Int64 {
        try inTurn { () throws(StateError) in
            let open = try openStore()
            do {
                let count = try open.shrink()
                gauges.note(freeByteCount: try open.freeByteCount())
                return count
            } catch {
                throw stateError(error)
            }
        }
    }

    private func openStore() throws(StateError) -> OpenStore {
        guard let open else {
            throw StateError(.readOnly, "\(location.database) is not open: nothing was compacted")
        }
        return open
    }

    private func stateError(_ error: any Error) -> StateError {
        error as? StateError ?? StateError(.storage, "\(location.database): \(error)")
    }

    private func target(in open: OpenStore) -> Int64 {
        max(open.marks.retained(at: clock()).revision, wantedRevision)
    }

    /// What is to be swept.
    private func backlog(of open: OpenStore) -> Backlog {
        let target = target(in: open)
        let sweep = open.sweep
        guard target > sweep.sweptRevision || sweep.isSweeping,
            finishedCompaction
                != FinishedCompaction(target: target, newest: open.marks.end.revision)
        else { return Backlog() }
        let (from, to) = (
            open.marks.mark(through: sweep.sweptRevision), open.marks.mark(through: target)
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

    /// How much history there is; may be asked for from anywhere.
    package var historyStatus: HistoryStatus { gauges.status }
}

/// How much history a store has.
package struct HistoryStatus: Hashable, Sendable {
    /// From this revision on it is whole.
    package var compacted: Int64 = 0
    /// Rows: live ones, and changes.
    package var rowCount: Int64 = 0
    /// Changes beyond the retention that compaction has not taken away yet.
    package var backlogRowCount: Int64 = 0
    /// Bytes of the database that nothing uses.
    package var freeByteCount: Int64 = 0
    /// Why the last piece of compaction failed; nil where it did not.
    package var failure: String?
}

/// What the commit thread tells of the history, for any thread to read.
final class HistoryGauges: Sendable {
    private let compacted = Atomic<Int64>(0)
    private let rowCount = Atomic<Int64>(0)
    private let backlogRowCount = Atomic<Int64>(0)
    private let freeByteCount = Atomic<Int64>(0)
    private let failure = StateLock<String?>(nil)

    var status: HistoryStatus {
        HistoryStatus(
            compacted: compacted.load(ordering: .relaxed),
            rowCount: rowCount.load(ordering: .relaxed),
            backlogRowCount: backlogRowCount.load(ordering: .relaxed),
            freeByteCount: freeByteCount.load(ordering: .relaxed),
            failure: failure.withLock { $0 }
        )
    }

    func note(_ store: OpenStore) {
        compacted.store(store.sweep.compacted, ordering: .relaxed)
        rowCount.store(store.rowCount, ordering: .relaxed)
    }

    func note(backlogRowCount count: Int64) { backlogRowCount.store(count, ordering: .relaxed) }

    func note(freeByteCount count: Int64) { freeByteCount.store(count, ordering: .relaxed) }

    func note(failure text: String?) { failure.withLock { $0 = text } }
}
