import CLinux
import CSQLite
import Glibc
import StateEngine
import StateSQLite

/// The new store of a salvage or a restore, which is created atomically.
///
/// It is written beside its location, and moved there when everything in it is on disk. Unless
/// ``keep()`` is called, everything that was made is removed again, while the lock is still held:
/// what others put there meanwhile stays.
final class NewStore {
    private let location: StoreLocation
    private let draft: StoreLocation
    private let directory: NewDirectory
    private let lock: OwnerLock
    /// Nil before it is opened, and once it is closed.
    private var connection: SQLiteConnection?
    private var phase = Phase.locked
    private var rowCount: Int64 = 0
    /// The records that are not written yet, concatenated.
    private var pending: [UInt8] = []
    private var ends: [Int] = []

    private static let pendingByteCount = 4 << 20
    private static let pendingRowCount = 10_000

    /// What there is of it.
    private enum Phase {
        case locked
        case draft
        case placed
        case kept
    }

    /// Creates an empty store, and its directory.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - isNew: Refuses one that exists.
    /// - Throws: ``StateError/Code/storage`` if there is a store already, or none can be created;
    ///   ``StateError/Code/locked`` if another process is about to make one there.
    init(directory path: String, isNew: Bool = false) throws {
        location = StoreLocation(directory: path)
        draft = StoreLocation(path: location.unfinished)
        if !isNew { try location.prepare() }
        directory = try NewDirectory(path: path, isNew: isNew)
        do throws(StateError) {
            try location.prepare()
            lock = try OwnerLock(path: location.lock, for: location.database)
        } catch {
            directory.removeIfOwn()
            throw error
        }
        try makeDraft()
    }

    deinit { if phase != .kept { discard() } }

    private func makeDraft() throws {
        for path in [location.database, location.log] where FileIdentity(path: path) != nil {
            throw StateError(
                .storage,
                "there is a store in \(location.directory) already: \(path)"
            )
        }
        phase = .draft
        directory.removeOnSignal(fileNames)
        remove(draft)
        try HistorySchema.create(at: draft)
        let connection = try SQLiteConnection(path: draft.database, under: lock)
        // Nothing counts before the end, so nothing is synced before.
        try connection.execute("PRAGMA synchronous=OFF")
        self.connection = connection
    }

    /// Removes what this made.
    private func discard() {
        connection = nil
        directory.remove(fileNames)
        directory.removeIfOwn()
        clinux_forget_drafts()
    }

    /// The names of what this has made by now.
    private var fileNames: [String] {
        guard phase != .locked else { return [] }
        let stores = phase == .placed ? [draft, location] : [draft]
        let paths = stores.flatMap { [$0.database, $0.log, $0.logIndex, $0.database + ".new"] }
        // Nobody waits for the lock: a process that finds it taken ends.
        return (paths + (directory.isOwn ? [location.lock] : [])).map(\.fileName)
    }

    private func remove(_ store: StoreLocation) {
        let paths = [store.database, store.log, store.logIndex, store.database + ".new"]
        directory.remove(paths.map(\.fileName))
    }

    /// Checks what was placed, and that nobody else has changed it.
    ///
    /// - Throws: ``StateError/Code/corrupt`` if it is not sound, or why it cannot be checked.
    func check(_ progress: @escaping (Int64) -> Void) throws -> StoreCheck.Summary {
        let check = StoreCheck(
            store: location.directory,
            under: lock,
            report: { _ in },
            progress: progress
        )
        let found = try check.run()
        guard found.findingCount == 0 else {
            throw StateError(
                .corrupt,
                "the store in \(location.directory) is not what was written to it"
            )
        }
        return found
    }

    /// Makes the store and its name durable; it stays from now on.
    func keep() throws {
        try directory.syncName()
        clinux_forget_drafts()
        phase = .kept
    }

    /// Appends the row of an intact record.
    func append(_ record: [UInt8]) throws {
        pending += record
        ends.append(pending.count)
        if pending.count >= NewStore.pendingByteCount
            || ends.count >= NewStore.pendingRowCount
        {
            try write()
        }
    }

    /// Appends rows that `source` passes on; their bytes are valid until it returns.
    func append(
        rowCount count: Int,
        _ source: ((borrowing StoredChange) throws(SQLiteFailure) -> Void) throws(SQLiteFailure) ->
            Void
    ) throws {
        guard let connection, count > 0 else { return }
        // In order: records may wait.
        try write()
        try attempt { () throws(SQLiteFailure) in
            try connection.transaction { () throws(SQLiteFailure) in
                let writer = try HistoryWriter(connection)
                writer.begin(rowCount: count)
                try source { change throws(SQLiteFailure) in try writer.append(change) }
            }
        }
        rowCount += Int64(count)
    }

    private func write() throws {
        guard let connection, !ends.isEmpty else { return }
        try pending.withUnsafeBytes { bytes in
            try attempt { () throws(SQLiteFailure) in
                try connection.transaction { () throws(SQLiteFailure) in
                    try append(bytes, to: HistoryWriter(connection))
                }
            }
        }
        rowCount += Int64(ends.count)
        pending.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
    }

    private func append(_ bytes: Bytes, to writer: HistoryWriter) throws(SQLiteFailure) {
        writer.begin(rowCount: ends.count)
        var start = 0
        for end in ends {
            guard let row = StoredRecord.historyRow(bytes.slice(start, end)) else {
                preconditionFailure("an intact row cannot be read any more")
            }
            try writer.append(row.change)
            start = end
        }
    }

    /// Puts the store into its place, where it stays once ``keep()`` is called.
    ///
    /// Below the revision `compacted` no history is available; the next revision is above
    /// `leastRevision`; `check` is called when everything is written, before it counts. The
    /// metadata is that of the other store.
    func finish(
        compacted: Int64,
        leastRevision: Int64,
        floors: HistoryFloors,
        metadata: [String: String],
        _ check: () throws -> Void
    ) throws {
        try write()
        var floors = floors
        floors.drop(through: compacted)
        try writeMeta(
            compacted: compacted,
            leastRevision: leastRevision,
            floors: floors,
            metadata: metadata
        )
        try check()
        connection?.checkpointsOnClose()
        // Closes it, which removes the log.
        connection = nil
        try place()
    }

    private func writeMeta(
        compacted: Int64,
        leastRevision: Int64,
        floors: HistoryFloors,
        metadata: [String: String]
    ) throws {
        guard let connection else { return }
        try attempt { () throws(SQLiteFailure) in
            try connection.execute("PRAGMA synchronous=FULL")
            try connection.transaction { () throws(SQLiteFailure) in
                let table = StoreMetadata(connection)
                try table.set(.compacted, "\(compacted)")
                try table.set(.leastRevision, "\(leastRevision)")
                try table.set(.rowCount, "\(rowCount)")
                try table.set(floors)
                try table.set(metadata: metadata)
            }
            _ = try connection.text("PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    private func place() throws(StateError) {
        let names = (draft.database.fileName, location.database.fileName)
        guard sync(names.0), directory.rename(names.0, names.1) else { throw cannotPlace }
        phase = .placed
        directory.removeOnSignal(fileNames)
        guard directory.sync() else { throw cannotPlace }
    }

    private var cannotPlace: StateError {
        StateError(.storage, "\(location.database) cannot be created: \(lastSystemError())")
    }

    private func sync(_ name: String) -> Bool {
        let descriptor = openat(directory.descriptor, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }

    private func attempt(_ body: () throws(SQLiteFailure) -> Void) throws(StateError) {
        do {
            try body()
        } catch {
            throw StateError(
                error.primaryCode == SQLITE_FULL ? .noSpace : .storage,
                "\(draft.database) cannot be written: \(error)"
            )
        }
    }
}

extension String {
    /// What follows the last slash.
    fileprivate var fileName: String {
        lastIndex(of: "/").map { String(self[index(after: $0)...]) } ?? self
    }
}
