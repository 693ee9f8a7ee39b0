import CSQLite
import Glibc
import StateEngine
import StateSQLite

/// The new store of a salvage, which is there whole or not at all.
///
/// Written beside its place, moved there when everything in it is on the disk.
final class SalvagedStore {
    private let location: StoreLocation
    private let draft: StoreLocation
    private let lock: OwnerLock
    /// Nil once it is closed.
    private var connection: SQLiteConnection?
    private var rowCount: Int64 = 0
    /// The records that are not written yet, one behind the other.
    private var pending: [UInt8] = []
    private var ends: [Int] = []

    private static let pendingByteCount = 4 << 20
    private static let pendingRowCount = 10_000

    /// Makes the directory where it is absent, and an empty store in it.
    ///
    /// - Throws: ``StateError/Code/storage``, where a store is there already or none can be made.
    init(directory: String) throws {
        location = StoreLocation(directory: directory)
        draft = StoreLocation(path: location.database + ".salvage")
        try location.prepare()
        for path in [location.database, location.log] where FileIdentity(path: path) != nil {
            throw StateError(.storage, "there is a store in \(directory) already: \(path)")
        }
        lock = try OwnerLock(path: location.lock, for: location.database)
        SalvagedStore.remove(draft)
        try HistorySchema.create(at: draft)
        let connection = try SQLiteConnection(path: draft.database, under: lock)
        // Nothing of it counts before the end, so nothing is synced before.
        try connection.execute("PRAGMA synchronous=OFF")
        self.connection = connection
    }

    /// What is half done goes.
    deinit { if connection != nil { SalvagedStore.remove(draft) } }

    private static func remove(_ store: StoreLocation) {
        for path in [store.database, store.log, store.logIndex] { unlink(path) }
    }

    /// Appends the row of a record that was found whole.
    func append(_ record: [UInt8]) throws {
        pending += record
        ends.append(pending.count)
        if pending.count >= SalvagedStore.pendingByteCount
            || ends.count >= SalvagedStore.pendingRowCount
        {
            try write()
        }
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
                preconditionFailure("a row that was whole is none any more")
            }
            try writer.append(row.change)
            start = end
        }
    }

    /// Puts the store in its place.
    ///
    /// Below the revision `compacted` history is not offered, the next revision is above `leastRevision`, and `check` is
    /// called when everything is written, before it counts. The notes are of the store that was damaged, and say so.
    func finish(
        compacted: Int64,
        leastRevision: Int64,
        metadata: [String: String],
        _ check: () throws -> Void
    ) throws {
        try write()
        try writeMeta(compacted: compacted, leastRevision: leastRevision, metadata: metadata)
        try check()
        connection?.checkpointsOnClose()
        // Closes it, which takes the log away.
        connection = nil
        do {
            try place()
        } catch {
            SalvagedStore.remove(draft)
            throw error
        }
    }

    private func writeMeta(
        compacted: Int64,
        leastRevision: Int64,
        metadata: [String: String]
    ) throws {
        guard let connection else { return }
        try attempt { () throws(SQLiteFailure) in
            try connection.execute("PRAGMA synchronous=FULL")
            try connection.transaction { () throws(SQLiteFailure) in
                let table = StoreMetadata(connection)
                try table.set(.compacted, "\(compacted)")
                // What is superseded may be there up to any revision.
                try table.set(.swept, "0")
                try table.set(.leastRevision, "\(leastRevision)")
                try table.set(.rowCount, "\(rowCount)")
                try table.set(metadata: metadata)
            }
            _ = try connection.text("PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    private func place() throws(StateError) {
        guard SalvagedStore.sync(draft.database, O_RDWR),
            rename(draft.database, location.database) == 0,
            SalvagedStore.sync(location.directory, O_RDONLY | O_DIRECTORY)
        else {
            throw StateError(.storage, "\(location.database) cannot be made: \(lastSystemError())")
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
