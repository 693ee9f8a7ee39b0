import StateEngine
import StateWire

/// A watch of a connection: writes what it is told as pushes.
final class ConnectionWatcher: WatchReceiver {
    let format: WatchFormat
    let watcher: Watcher
    private unowned let connection: Connection
    private unowned let services: Services
    /// Commits that came while the ones before them are read, as they will be sent.
    private var kept = ByteBuffer()
    /// The limits of rules that it counts for.
    var limits: Set<WatchTally.Limit> = []

    /// How much memory that takes.
    var keptByteCount: Int { kept.footprint }

    /// How much of what comes during a read is kept.
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

    /// How much may be owed of latest values, to all watches of the client together.
    var latestByteLimit: Int { services.settings.options.outputByteCount }

    var hasRoom: Bool {
        if connection.outbound.bytes.count < services.settings.options.outputByteCount,
            services.registry.memory.hasRoom(of: connection)
        {
            return true
        }
        // It is blocked by that, and waits for room.
        services.registry.addAdvancing(connection)
        return false
    }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        switch notice {
        case .commit(let revision, let changes):
            tell(revision, changes, core, to: &connection.outbound.bytes)
        case .piece(let records):
            format.writeHead(0, count: records.count, to: &connection.outbound.bytes)
            for record in records {
                format.writePiece(record, core, to: &connection.outbound.bytes)
            }
        case .synced(let revision):
            format.writeMark("state.synced", revision, to: &connection.outbound.bytes)
        case .gap(let revision):
            format.writeMark("state.gap", revision, to: &connection.outbound.bytes)
        case .latest(let values):
            format.writeLatest(values, to: &connection.outbound.bytes)
        }
        services.flushes.add(connection)
        // A commit goes to as many as watch.
        services.registry.memory.count(connection)
    }

    /// Writes a commit, which is formatted once for all who are told the same of it.
    private func tell(
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
        tell(revision, changes, core, to: &kept)
        services.flushes.add(connection)
        if kept.count <= ConnectionWatcher.keptByteCount { return true }
        forgetKept()
        return false
    }

    private func forgetKept() {
        kept.removeAll()
        kept.shrink(to: 0)
    }

    /// Takes over what a job has read.
    ///
    /// - Returns: What to log.
    func finish(_ job: CatchUpJob, _ failure: StateError?, in core: KeyspaceCore) -> String? {
        defer { forgetKept() }
        guard failure == nil, !job.isCompacted, watcher.awaitsReading else {
            return failReading(failure)
        }
        connection.outbound.bytes.append(job.output.bytes)
        let keepsDelivered = watcher.finishReading(
            through: job.reached,
            told: job.deliveredRevision,
            in: core
        )
        if keepsDelivered { connection.outbound.bytes.append(kept.bytes) }
        services.flushes.add(connection)
        return nil
    }

    /// The same for one that has collected marks.
    func finish(
        _ job: CollectChangedKeysJob,
        _ failure: StateError?,
        in core: KeyspaceCore
    ) -> String? {
        guard failure == nil, !job.isLost else { return failReading(failure) }
        watcher.finishReading(marks: job.marks, through: job.through, in: core)
        return nil
    }

    private func failReading(_ failure: StateError?) -> String? {
        watcher.failReading()
        guard let failure, failure.code != .compacted else { return nil }
        return
            "watch \(number) of client \(connection.number) cannot be told what was, and gets the "
            + "state instead: \(failure.message)"
    }

    // MARK: How far it is

    /// A watch is always in exactly one of these.
    enum Group: String, CaseIterable {
        /// Everything that is durable was told.
        case synced
        /// It is being told what was, a state, or a round of latest values.
        case catchingUp = "catching up"
        /// It waits for its client to read.
        case blocked
    }

    var group: Group {
        if watcher.phase == .blocked { return .blocked }
        guard watcher.isBehind else { return .synced }
        return connection.outbound.bytes.count < Server.pieceByteCount ? .catchingUp : .blocked
    }

    /// Bytes that wait for its client: what is to be sent on its connection, whichever watch it is of, and what it keeps itself.
    var waitingByteCount: Int {
        connection.outbound.waitingByteCount + kept.count + (watcher.waiting?.byteCount ?? 0)
    }

    /// Tells how far it is, where that is further than what was told last and there is room.
    ///
    /// - Returns: Whether it is to be asked again before anything else becomes durable.
    func sendProgress(_ core: KeyspaceCore) -> Bool {
        guard let revision = watcher.deliveredThrough(in: core) else { return false }
        let isOnTheWay = watcher.phase != .synced
        guard revision > watcher.deliveredRevision else { return isOnTheWay }
        guard hasRoom else { return true }
        // A round of nothing is the bookmark of latest values.
        let isLatest = format.options.contains(.latest)
        format.writeMark(
            isLatest ? "state.synced" : "state.progress",
            revision,
            to: &connection.outbound.bytes
        )
        watcher.noteProgress(revision)
        services.flushes.add(connection)
        return isOnTheWay
    }
}
