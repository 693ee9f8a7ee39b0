import CSQLite
import Glibc
import StateEngine
import StateSQLite

/// The new store of a salvage or a restore, which is created atomically.
///
/// It is written beside its location, and moved there when everything in it is on disk.
final class NewStore {
    private let location: StoreLocation
    private let draft: StoreLocation
    private let lock: OwnerLock
    /// Nil once it is closed.
    private var connection: SQLiteConnection?
    private var rowCount: Int64 = 0
    /// The records that are not written yet, concatenated.
    private var pending: [UInt8] = []
    private var ends: [Int] = []

    private static let pendingByteCount = 4 << 20
    private static let pendingRowCount = 10_000

    /// Creates the directory if it is missing, and an empty store in it.
    ///
    /// - Throws: ``StateError/Code/storage`` if there is a store already, or none can be created.
    init(directory: String) throws {
        location = StoreLocation(directory: directory)
        draft = StoreLocation(path: location.database + ".salvage")
        try location.prepare()
        for path in [location.database, location.log] where FileIdentity(path: path) != nil {
            throw StateError(.storage, "there is a store in \(directory) already: \(path)")
        }
        lock = try OwnerLock(path: location.lock, for: location.database)
        NewStore.remove(draft)
        try HistorySchema.create(at: draft)
        let connection = try SQLiteConnection(path: draft.database, under: lock)
        // Nothing counts before the end, so nothing is synced before.
        try connection.execute("PRAGMA synchronous=OFF")
        self.connection = connection
    }

    /// Removes an unfinished store.
    deinit { if connection != nil { NewStore.remove(draft) } }

    private static func remove(_ store: StoreLocation) {
        for path in [store.database, store.log, store.logIndex] { unlink(path) }
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

    /// Puts the store into its place.
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
        do {
            try place()
        } catch {
            NewStore.remove(draft)
            throw error
        }
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
        guard NewStore.sync(draft.database, O_RDWR),
            rename(draft.database, location.database) == 0,
            NewStore.sync(location.directory, O_RDONLY | O_DIRECTORY)
        else {
            throw StateError(
                .storage,
                "\(location.database) cannot be created: \(lastSystemError())"
            )
        }
    }

    private static func sync(_ path: String, _ flags: Int32) -> Bool {
        let descriptor = open(path, flags | O_CLOEXEC)
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
