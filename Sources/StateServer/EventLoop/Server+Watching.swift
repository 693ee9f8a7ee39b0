import CLinux
import StateEngine
import StateWire

/// Watches that are not synced, and bookmarks.
///
/// Every watch is synced, catching up or blocked (``Watcher/Phase``). The registry lists the
/// connections with a watch that is not synced, unless it only waits for the history.
extension Server {
    /// Bytes of one piece of a snapshot, and how much output may wait before the next piece.
    static let pieceByteCount = 256 << 10

    /// Whether a watch that is not synced can make progress now.
    var canAdvance: Bool {
        var isFound = false
        registry.updateAdvancing { connection in
            guard connection.watches.all.values.contains(where: connection.watches.canAdvance)
            else {
                return false
            }
            if hasRoomForPiece(connection) { isFound = true }
            return true
        }
        return isFound
    }

    /// Advances watches that are not synced by a step, if their clients have read the output
    /// before.
    func advanceWatchers() {
        keyspace.withCore { advanceWatchers($0) }
    }

    /// The same under the keyspace's lock.
    func advanceWatchers(_ core: KeyspaceCore) {
        var time = SnapshotTime()
        registry.updateAdvancing { connection in
            advance(connection, core, &time)
            return connection.watches.all.values.contains(where: connection.watches.canAdvance)
        }
        if time.isUsedUp { registry.rotateAdvancing() }
    }

    private func hasRoomForPiece(_ connection: Connection) -> Bool {
        guard connection.outbound.bytes.count < Server.pieceByteCount else { return false }
        if registry.memory.hasRoom(of: connection) { return true }
        expectStalls()
        return false
    }

    /// Advances the watches in turn, so that one that always has more to deliver does not delay
    /// others.
    private func advance(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ time: inout SnapshotTime
    ) {
        guard hasRoomForPiece(connection) else { return }
        let waiting = connection.watches.all.values.filter(connection.watches.canAdvance)
        let reader = waiting.lazy.filter(\.readsHistory)
            .min { connection.watches.turn(of: $0) < connection.watches.turn(of: $1) }
        // The result of the read comes later, so it takes no room from the others now.
        if let reader { reader.watcher.advance(in: core, byteLimit: Server.pieceByteCount) }
        for watcher in connection.watches.inTurn(waiting.filter { !$0.readsHistory }) {
            guard hasRoomForPiece(connection) else { return }
            if watcher.isInSnapshot {
                if time.isUsedUp { continue }
                time.begin()
            }
            connection.watches.lastServed = watcher.number
            watcher.watcher.advance(in: core, byteLimit: Server.pieceByteCount)
        }
    }

    /// Handles a finished read of the history for a watch, which may have ended meanwhile.
    ///
    /// A watch that has caught up gets a bookmark at once if the last commits did not match it: the
    /// client that resumed it waits for that.
    ///
    /// - Parameters:
    ///   - missed: The commits that were read.
    ///   - body: Handles the result, and returns a line to log.
    func finishReading(_ missed: MissedCommits, _ body: (KeyspaceCore) -> String?) {
        let (watcher, connection) = (missed.watcher, missed.connection)
        if connection.watches.reader === watcher { connection.watches.reader = nil }
        guard !connection.isClosed else { return }
        registry.addAdvancing(connection)
        guard connection.watches.all[watcher.number] === watcher else { return }
        keyspace.withCore { core in
            if let line = body(core) { options.log(.error, .historyNotRead, line) }
            if watcher.watcher.phase == .synced, !watcher.format.options.contains(.latest) {
                _ = watcher.sendProgress(core)
            }
        }
        scheduleProgress()
    }

    // MARK: Bookmarks

    /// Plans the next bookmark if none is planned, after something was delivered or became durable.
    func scheduleProgress() {
        guard !timers.isSet(.bookmarks) else { return }
        let now = SystemClock.monotonicMilliseconds()
        timers.set(.bookmarks, at: now + options.progressMilliseconds)
    }

    /// Sends a bookmark to each watch that got nothing since the last one.
    func sendProgress() {
        keyspace.withCore { core in
            for connection in registry.connections {
                for watcher in connection.watches.all.values where watcher.sendProgress(core) {
                    scheduleProgress()
                }
            }
        }
    }
}

/// The time limit for the snapshots of all watches in one turn, in which nobody else is served.
///
/// A single piece costs a few ms at most, but 100 watches of globs that match nothing took 20 s in
/// one turn with 300,000 keys.
private struct SnapshotTime {
    private static let nanoseconds: Int64 = 2_000_000
    private var end = Int64.max

    mutating func begin() {
        guard end == .max else { return }
        end = clinux_monotonic_nanoseconds() + SnapshotTime.nanoseconds
    }

    var isUsedUp: Bool { end != .max && clinux_monotonic_nanoseconds() >= end }
}

extension ConnectionWatcher {
    /// Whether it is receiving a snapshot.
    fileprivate var isInSnapshot: Bool {
        if case .snapshot = watcher.phase { true } else { false }
    }

    /// Whether it reads the history when it is advanced.
    var readsHistory: Bool {
        switch watcher.phase {
        case .catchingUp, .blocked: true
        case .synced, .snapshot: false
        }
    }
}
