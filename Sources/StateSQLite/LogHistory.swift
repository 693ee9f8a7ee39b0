import CLinux
public import StateEngine
import StateLog
import StateModel

/// The past that the log has, for one thread at a time.
final class LogHistory: SettledReading {
    private let tail: LogTail
    private let backing: SQLiteBacking
    private var view: LogView?
    private var known = LogView.KnownFrames()
    /// Those of the view: what a rule removes later is there still.
    private var viewFloors = HistoryFloors()
    /// Opened when rows are read first.
    private var rows: SettledRows?

    init(_ tail: LogTail, _ backing: SQLiteBacking) { (self.tail, self.backing) = (tail, backing) }

    func snapshot<R>(_ body: (_ compacted: Int64) throws -> R) throws -> R {
        try tail.withView { [backing] in
            backing.floors.withLock { $0 }
        } _: { view, floors in
            (self.view, viewFloors) = (view, floors)
            defer { (self.view, known) = (nil, LogView.KnownFrames()) }
            return try body(view.floor)
        }
    }

    func floors() throws -> HistoryFloors { viewFloors }

    func forEachChange(
        after place: HistoryPlace,
        through revision: Int64,
        _ receive: (borrowing StoredChange) -> Bool
    ) throws -> Bool {
        try currentView.forEachChange(after: place, through: revision) { change, _ in
            receive(change)
        }
    }

    func withChange(
        at place: HistoryPlace,
        supersededBy successor: HistoryPlace?,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> Bool {
        let view = currentView
        // What was superseded before the past begins is gone, although its segment may not be, and so are
        // deletes from before.
        if let successor, successor.revision <= view.floor { return false }
        var isKept = true
        let isThere = try view.withChange(
            at: place,
            supersededBy: successor,
            remembering: &known
        ) { change in
            isKept = change.value != nil || change.revision > view.floor || successor == nil
            if isKept { receive(change) }
        }
        return isThere && isKept
    }

    var lastRowRevision: Int64 { backing.lastRowRevision }

    var settledRevision: Int64 { backing.status.settledRevision }

    var firstRevision: Int64 { view?.firstRevision ?? 0 }

    func hasRead(_ place: HistoryPlace, supersededBy successor: HistoryPlace?) -> Bool {
        known.have(place.revision < firstRevision ? successor ?? place : place)
    }

    func forEachRow(
        after key: [UInt8]?,
        _ receive: (borrowing StoredChange) -> Bool
    ) throws -> Bool {
        let rows = try self.rows ?? backing.openRows()
        self.rows = rows
        return try rows.forEach(after: key, receive)
    }

    func forEachCarryingChange(
        after place: HistoryPlace,
        through revision: Int64,
        _ receive: (_ change: borrowing StoredChange, _ carried: PastChange?) -> Bool
    ) throws -> Bool {
        try currentView.forEachChange(after: place, through: revision) { change, link in
            receive(change, link.carried)
        }
    }

    private var currentView: LogView {
        guard let view else { preconditionFailure("a read of the history outside of a snapshot") }
        return view
    }
}

extension SQLiteBacking: CompactingBacking {
    /// What the log has of the past, for a reader on any thread.
    public func openHistory() throws -> any HistoryReading {
        guard let tail else {
            throw StateError(.storage, "the store is not open: there is no history to read")
        }
        return LogHistory(tail, self)
    }

    /// Segments are dropped by the thread that settles; what is left to do here is to say so.
    package var hasCompactionNews: Bool { settler?.hasNews ?? false }

    package var shortage: StateError? { room.shortage }

    package func lookForRoom() {
        guard let settler else { return }
        if settler.look(trying: true) < .ample { settler.askForRoom() }
        settler.noteStatus()
    }

    package func raiseCompaction(to revision: Int64) {
        refusal = pauseMilliseconds > 0 ? CompactionPause.refusal(endingIn: pauseMilliseconds) : nil
        guard refusal == nil else { return }
        tail?.withLog { $0.leastFloor = max($0.leastFloor, revision) }
        settler?.dropSoon()
    }

    package func pauseCompaction() { pause.begin(at: clinux_boottime_milliseconds()) }

    package func resumeCompaction() {
        pause.finish()
        settler?.wake()
    }

    package var removalCount: Int { pause.removalCount }

    /// How long nothing is removed if no more of a backup is read; 0 without one.
    package var pauseMilliseconds: Int64 { pause.millisecondsLeft(clinux_boottime_milliseconds) }

    package func keep(by rules: HistoryRules?) { settler?.rules.withLock { $0 = rules } }

    /// Waits a little for what the thread that settles was asked for.
    package func compact(while goesOn: () -> Bool) throws(StateError) -> CompactionStep {
        if let refusal = refusal.take() { throw refusal }
        var isDone = true
        if let settler {
            repeat { isDone = try settler.hasDropped(within: 200_000) } while !isDone && goesOn()
        }
        var step = CompactionStep(compacted: tail?.withLog { $0.floor } ?? 0)
        step.tombstones = settler?.takeForgotten() ?? []
        step.isDone = isDone
        return step
    }

    package func syncCompaction() throws(StateError) {
        guard let tail else { return }
        do { try writeFloor(tail.withLog { $0.floor }) } catch {
            throw error as? StateError ?? StateError(.storage, "\(error)")
        }
    }

    package func shrink() throws(StateError) -> Int64 { try settler?.shrink() ?? 0 }
}

extension LogRetention {
    init(_ limits: HistoryLimits) {
        let (seconds, attoseconds) = limits.age.components
        self.init(
            changeCount: limits.changeCount,
            byteCount: Int(clamping: limits.byteCount),
            age: seconds > Int64.max / 2_000
                ? .max : seconds * 1_000 + attoseconds / 1_000_000_000_000_000
        )
    }
}
