import CLinux
import StateEngine
import StateWire

/// Watches that are not synced, and bookmarks.
///
/// Every watch is synced, catching up or blocked (``Watcher/Phase``); the connections with one that is not synced stand in the
/// registry's list as long as there is something to do for it but to wait for the history.
extension Server {
    /// Bytes of one piece of a snapshot, and how much output may wait before more is made.
    static let pieceByteCount = 256 << 10

    /// Whether a watch that is not synced may be brought nearer to the present now.
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

    /// Brings watches that are not synced a step nearer, where their clients have read what went before.
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

    /// Each watch in its turn, so that one of which there is always more to tell keeps no other waiting.
    private func advance(
        _ connection: Connection,
        _ core: KeyspaceCore,
        _ time: inout SnapshotTime
    ) {
        guard hasRoomForPiece(connection) else { return }
        let waiting = connection.watches.all.values.filter(connection.watches.canAdvance)
        let reader = waiting.lazy.filter(\.readsHistory)
            .min { connection.watches.turn(of: $0) < connection.watches.turn(of: $1) }
        // What is read comes later: it takes no room from the others now.
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

    /// Takes over that the history was read for a watch, which may have ended meanwhile.
    ///
    /// One that has caught up is told so at once where the last commits were not for it: whoever resumed it waits for that.
    ///
    /// - Parameters:
    ///   - missed: What was read.
    ///   - body: Takes the result over, and returns what to log.
    func finishReading(_ missed: MissedCommits, _ body: (KeyspaceCore) -> String?) {
        let (watcher, connection) = (missed.watcher, missed.connection)
        if connection.watches.reader === watcher { connection.watches.reader = nil }
        guard !connection.isClosed else { return }
        registry.addAdvancing(connection)
        guard connection.watches.all[watcher.number] === watcher else { return }
        keyspace.withCore { core in
            if let line = body(core) { options.log(.error, line) }
            if watcher.watcher.phase == .synced, !watcher.format.options.contains(.latest) {
                _ = watcher.sendProgress(core)
            }
        }
        scheduleProgress()
    }

    // MARK: Bookmarks

    /// Something was told or became durable: a bookmark is due some time later, if none is already.
    func scheduleProgress() {
        guard !timers.isSet(.bookmarks) else { return }
        let now = SystemClock.monotonicMilliseconds()
        timers.set(.bookmarks, at: now + options.progressMilliseconds)
    }

    /// Tells the watches that nothing was told of how far they are.
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

/// How long the snapshots of all watches may be looked for in one turn of the loop, in which nobody else is served.
///
/// A piece by itself costs a few ms at most; 100 watches of globs that match nothing cost 20 s in one turn among 300,000 keys.
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
    /// Whether it is being told a state.
    fileprivate var isInSnapshot: Bool {
        if case .snapshot = watcher.phase { true } else { false }
    }

    /// Whether it takes a turn at the history when it is advanced.
    var readsHistory: Bool {
        switch watcher.phase {
        case .catchingUp, .blocked: true
        case .synced, .snapshot: false
        }
    }
}
