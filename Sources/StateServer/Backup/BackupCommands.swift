import CLinux
import StateEngine
import StateModel
import StateWire

/// STATE.BACKUP: the store at one revision, in pieces that a client asks for.
struct BackupCommands {
    private let services: Services

    init(_ services: Services) { self.services = services }

    // Not inlined into the switch of the commands: code that a SET does not need.
    @inline(never)
    func run(
        _ step: Command.BackupStep,
        _ context: inout CommandContext
    ) throws(StateError) {
        try requireEverything(context)
        switch step {
        case .begin(let includesHistory, let since):
            try begin(includesHistory: includesHistory, since, &context)
        case .next: try next(context)
        case .end:
            services.backups.end(context.connection)
            context.output.writeOK()
        }
    }

    /// A backup has the values of all keys, whatever rules say of them.
    private func requireEverything(_ context: borrowing CommandContext) throws(StateError) {
        try context.requireAdmin("STATE.BACKUP")
        guard context.showsEverything else {
            throw StateError(
                .noPermission,
                "a backup has all keys, and uid \(context.connection.peer.uid) may not read some "
                    + "of them"
            )
        }
    }

    private func begin(
        includesHistory: Bool,
        _ since: (revision: Int64, epoch: Bytes)?,
        _ context: inout CommandContext
    ) throws(StateError) {
        guard let compaction = services.keyspace.compaction else {
            throw StateError(
                .err,
                "values are kept in memory only: there is no store to back up; see statectl export"
            )
        }
        let revision = context.core.revisions.durable
        if let since {
            guard since.epoch.text == context.core.epoch.description else {
                throw StateError(
                    .conflict,
                    "the earlier backup is of another store, epoch "
                        + "\(StateError.quoted(since.epoch)); this one is "
                        + "\(context.core.epoch): make a whole backup"
                )
            }
            guard since.revision <= revision else {
                throw .notYet(since.revision, current: revision)
            }
        }
        compaction.pauseCompaction()
        let reading = BackupReading(
            at: revision,
            since: since?.revision ?? 0,
            includesHistory: includesHistory,
            compaction
        )
        let head = reading.begin(
            epoch: context.core.epoch,
            keyCount: context.core.storedKeyCount,
            version: services.settings.options.version,
            time: context.time
        )
        let metadata = includesHistory ? reading.metadata(context.core) : []
        services.backups.begin(reading, for: context.connection)
        do throws(StateError) {
            try services.settings.options.checkReply(head.count + metadata.count)
        } catch {
            services.backups.end(context.connection)
            throw error
        }
        context.output.writeMap(4, context.version)
        context.output.writeField("revision", revision)
        context.output.writeField("epoch", context.core.epoch.description)
        context.output.writeField("keys", Int64(context.core.storedKeyCount))
        context.output.writeBulk("piece")
        context.output.writeBulk(head + metadata)
    }

    private func next(_ context: borrowing CommandContext) throws(StateError) {
        guard let reading = context.connection.session.backup else {
            throw StateError(.err, "no backup was begun: STATE.BACKUP BEGIN comes first")
        }
        guard !reading.hasEnded else {
            services.backups.end(context.connection)
            context.output.writeNull(context.version)
            return
        }
        services.keyspace.compaction?.pauseCompaction()
        services.history.read(BackupJob(reading, for: context.connection, services.backups))
    }
}

/// STATE.BACKUP NEXT: reads one piece.
///
/// `@unchecked Sendable`: the history thread uses it between submission and finish, the loop thread
/// before and after.
final class BackupJob: ConnectionJob, @unchecked Sendable {
    let connection: Connection
    let control: JobControl
    private let reading: BackupReading
    private let backups: Backups

    init(_ reading: BackupReading, for connection: Connection, _ backups: Backups) {
        (self.reading, self.connection, self.backups) = (reading, connection, backups)
        control = JobControl(for: connection)
    }

    /// Others come first: nobody waits for a backup.
    var isBackground: Bool { true }

    var byteCount: Int { reading.byteCount }

    func readSlice(of history: any HistoryReading) throws -> Bool {
        try reading.readPiece(of: history)
    }

    /// What is missing in a piece would be missing in the backup.
    func release(_ core: KeyspaceCore) { backups.end(connection) }

    func writeReply(_ context: inout CommandContext) {
        context.output.writeBulk(reading.takePiece())
    }
}
