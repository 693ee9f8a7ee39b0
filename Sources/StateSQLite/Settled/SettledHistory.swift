package import StateEngine
import StateLog
import StateModel

/// The past that the log has, for one thread at a time.
final class SettledHistory: HistoryReading {
    private let tail: LogTail
    private let backing: SettledBacking
    private var view: LogView?

    init(_ tail: LogTail, _ backing: SettledBacking) { (self.tail, self.backing) = (tail, backing) }

    func snapshot<R>(_ body: (_ compacted: Int64) throws -> R) throws -> R {
        try tail.withView { view in
            self.view = view
            defer { self.view = nil }
            return try body(view.floor)
        }
    }

    func floors() throws -> HistoryFloors { backing.floors.withLock { $0 } }

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
        try currentView.withChange(at: place, supersededBy: successor, receive)
    }

    private var currentView: LogView {
        guard let view else { preconditionFailure("a read of the history outside of a snapshot") }
        return view
    }
}

extension SettledBacking: CompactingBacking {
    package func openHistory() throws -> any HistoryReading {
        guard let tail else {
            throw StateError(.storage, "the store is not open: there is no history to read")
        }
        return SettledHistory(tail, self)
    }

    /// Segments are dropped by the thread that settles; what is left to do here is to say so.
    package var compactionNeed: CompactionNeed {
        var need = CompactionNeed()
        need.isAny = settler?.hasNews ?? false
        need.isWorthwhile = need.isAny
        return need
    }

    package var shortage: StateError? { room.shortage }

    package func lookForRoom() {
        guard let settler else { return }
        if settler.look(trying: true) < .ample { settler.askForRoom() }
        settler.noteStatus()
    }

    package func load(
        lookingAhead _: LookAhead,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> LoadedStore { try load(receive) }

    package func didLoad(superseding _: HistoryPlace, byteCount _: Int) {}

    package func raiseCompaction(to revision: Int64) {
        tail?.withLog { $0.leastFloor = max($0.leastFloor, revision) }
        settler?.dropSoon()
    }

    package func compact(while _: () -> Bool) throws(StateError) -> CompactionStep {
        var step = CompactionStep(compacted: tail?.withLog { $0.floor } ?? 0)
        step.tombstones = settler?.takeForgotten() ?? []
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
