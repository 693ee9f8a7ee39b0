import StateEngine
import StatePlatform

/// The rows of a settled store, for one reader at a time, beside the thread that settles.
final class SettledRows {
    private let connection: SQLiteConnection
    private let pause: CompactionPause

    init(_ location: StoreLocation, under lock: OwnerLock, _ pause: CompactionPause) throws {
        self.pause = pause
        connection = try SQLiteConnection(path: location.database, under: lock)
        try connection.set("query_only=ON", "temp_store=MEMORY", "trusted_schema=OFF")
    }

    /// Passes rows in the order of keys; see ``SettledDatabase/forEachRow(of:after:in:_:)``.
    func forEach(
        after key: [UInt8]?,
        _ receive: (borrowing StoredChange) -> Bool
    ) throws -> Bool {
        try pause.readingRows {
            try SettledDatabase.forEachRow(of: connection, after: key, receive)
        }
    }
}
