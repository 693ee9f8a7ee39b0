import StateEngine
import StateWire

/// A watch of a connection: writes notices as pushes.
final class ConnectionWatcher: WatchReceiver {
    let format: WatchFormat
    let watcher: Watcher
    private unowned let connection: Connection
    // They live as long as the server: no check of that for each delivery.
    private unowned(unsafe) let services: Services
    /// Encoded commits that came while earlier ones are being read.
    private var kept = ByteBuffer()
    /// The limits of rules that count it.
    var limits: Set<WatchTally.Limit> = []

    /// The memory of the kept commits.
    var keptByteCount: Int { kept.footprint }

    /// The most bytes of commits kept during a read.
    private static let keptByteCount = 256 << 10

    init(
        _ patterns: PatternSet,
        _ format: WatchFormat,
        _ start: Watcher.Start,
        connection: Connection,
        services: Services,
        in core: KeyspaceCore
    ) {
        self.format = format
        self.connection = connection
        self.services = services
        watcher = Watcher(
            patterns,
            start,
            ConnectionWatcher.manner(format, connection, services),
            for: connection.subject,
            in: core
        )
        watcher.receiver = self
    }

    private static func manner(
        _ format: WatchFormat,
        _ connection: Connection,
        _ services: Services
    ) -> Watcher.Manner {
        guard format.options.contains(.latest) else { return .everyCommit }
        let limit = services.settings.options.outputByteCount
        let owed =
            connection.watches.owed
            ?? OwedBytes(limit: limit) { [unowned connection, flushes = services.flushes] in
                flushes.add(connection)
            }
        connection.watches.owed = owed
        return .latest(includesCause: format.options.contains(.by), owed)
    }

    var number: Int { format.number }

    /// The limit of latest values that wait for all watches of the client, in bytes.
    var latestByteLimit: Int { services.settings.options.outputByteCount }

    var hasRoom: Bool {
        let connection = connection
        if connection.outbound.bytes.count < services.settings.options.outputByteCount,
            services.registry.memory.hasRoom(of: connection)
        {
            return true
        }
        // Now it is blocked, and waits for room.
        services.registry.addAdvancing(connection)
        return false
    }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        let connection = connection
        switch notice {
        case .commit(let revision, let changes):
            write(revision, changes, core, to: &connection.outbound.bytes)
        case .piece(let records):
            format.writeHead(0, count: records.count, to: &connection.outbound.bytes)
            for record in records {
                format.writePiece(record, core, to: &connection.outbound.bytes)
            }
        case .synced(let revision):
            format.writeNotice("state.synced", revision, to: &connection.outbound.bytes)
        case .gap(let revision):
            format.writeNotice("state.gap", revision, to: &connection.outbound.bytes)
        case .latest(let values):
            format.writeLatest(values, to: &connection.outbound.bytes)
        }
        services.flushes.add(connection)
        // A commit goes to every watch, so memory is counted here.
        if !connection.isCounted { services.registry.memory.count(connection) }
    }

    /// Writes a commit, which is encoded once for all watches with the same changes and options.
    private func write(
        _ revision: Int64,
        _ changes: [Record],
        _ core: KeyspaceCore,
        to output: inout ByteBuffer
    ) {
        format.beginCommit(to: &output)
        let commits = services.flushes.encodedCommit
        commits.append(revision, changes, format.form, in: core, to: &output)
    }

    // MARK: The history

    func read(after position: Int64, through revision: Int64) {
        let missed = beginReading(after: position, through: revision)
        services.history.submit(CatchUpJob(missed, view))
    }

    func readChangedKeys(after position: Int64, through revision: Int64) {
        let missed = beginReading(after: position, through: revision)
        services.history.submit(CollectChangedKeysJob(missed, view))
    }

    /// What its client may see, for the history thread.
    private var view: Visibility { services.access.visibility(of: connection) }

    private func beginReading(after position: Int64, through revision: Int64) -> MissedCommits {
        connection.watches.reader = self
        connection.watches.lastReader = number
        return MissedCommits(
            watcher: self,
            connection: connection,
            position: position,
            through: revision
        )
    }

    func noteWork() { services.registry.addAdvancing(connection) }

    func hasWritten(_ record: Record) -> Bool { connection.session.cause?.number == record.cause }

    func keep(revision: Int64, changes: [Record], in core: KeyspaceCore) -> Bool {
        write(revision, changes, core, to: &kept)
        services.flushes.add(connection)
        if kept.count <= ConnectionWatcher.keptByteCount { return true }
        forgetKept()
        return false
    }

    private func forgetKept() {
        kept.removeAll()
        kept.shrink(to: 0)
    }

    /// Handles the result of a job.
    ///
    /// - Returns: A line to log.
    func finish(_ job: CatchUpJob, _ failure: StateError?, in core: KeyspaceCore) -> String? {
        defer { forgetKept() }
        guard failure == nil, !job.isCompacted, watcher.awaitsReading else {
            return failReading(failure)
        }
        connection.outbound.bytes.append(job.output.bytes)
        let keepsDelivered = watcher.finishReading(
            through: job.reached,
            delivered: job.deliveredRevision,
            in: core
        )
        if keepsDelivered { connection.outbound.bytes.append(kept.bytes) }
        services.flushes.add(connection)
        return nil
    }

    /// The same for a job that has collected changed keys.
    func finish(
        _ job: CollectChangedKeysJob,
        _ failure: StateError?,
        in core: KeyspaceCore
    ) -> String? {
        guard failure == nil, !job.isLost else { return failReading(failure) }
        watcher.finishReading(pending: job.pending, through: job.through, in: core)
        return nil
    }

    private func failReading(_ failure: StateError?) -> String? {
        watcher.failReading()
        // A client that has hung up is no failure, and its user may have many.
        guard let failure, failure.code != .compacted, failure != .cancelled else { return nil }
        return
            "watch \(number) of client \(connection.number) cannot read the history and gets a gap "
            + "and the current state instead: \(failure.message)"
    }

    // MARK: How far it is

    /// A watch is always in exactly one of these.
    enum Group: String, CaseIterable {
        /// Everything durable was delivered.
        case synced
        /// It is receiving history, a snapshot, or a round of latest values.
        case catchingUp = "catching up"
        /// It waits for its client to read.
        case blocked
    }

    var group: Group {
        if watcher.phase == .blocked { return .blocked }
        guard watcher.isBehind else { return .synced }
        return connection.outbound.bytes.count < Server.pieceByteCount ? .catchingUp : .blocked
    }

    /// Bytes that wait for its client: the output of its connection, for any watch, and its kept
    /// commits.
    var waitingByteCount: Int {
        connection.outbound.waitingByteCount + kept.count + (watcher.waiting?.byteCount ?? 0)
    }

    /// Sends a bookmark if it is ahead of the last delivered revision and there is room.
    ///
    /// - Returns: Whether this must be called again before anything else becomes durable.
    func sendProgress(_ core: KeyspaceCore) -> Bool {
        guard let revision = watcher.deliveredThrough(in: core) else { return false }
        let isOnTheWay = watcher.phase != .synced
        guard revision > watcher.deliveredRevision else { return isOnTheWay }
        guard hasRoom else { return true }
        // With latest values, an empty round is the bookmark.
        let isLatest = format.options.contains(.latest)
        format.writeNotice(
            isLatest ? "state.synced" : "state.progress",
            revision,
            to: &connection.outbound.bytes
        )
        watcher.noteProgress(revision)
        services.flushes.add(connection)
        return isOnTheWay
    }
}
