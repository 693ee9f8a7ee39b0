import CSQLite
import StateEngine

/// Transactions beside the commits, and those that fail.
extension OpenStore {
    /// Writes metadata in its own transaction; not after a fault, until the store is reopened.
    func write(_ body: (MetadataWriter) throws(SQLiteFailure) -> Void) throws {
        try requireNoFault()
        _ = try transact { () throws(SQLiteFailure) in try body(statements.metadata) }
        progress.acknowledge()
    }

    /// Runs `body` in its own transaction.
    ///
    /// - Returns: Whether all of the log is on stable storage now.
    func transact(_ body: () throws(SQLiteFailure) -> Void) throws -> Bool {
        try attempt { () throws(SQLiteFailure) in
            try begin(changesRows: false)
            try body()
        }
        return try finishCommit()
    }

    /// Runs `body`, which starts no transaction or fails in an open one.
    func attempt<R>(_ body: () throws(SQLiteFailure) -> R) throws -> R {
        do {
            return try body()
        } catch {
            try abandon(error)
        }
    }

    /// The log may contain the complete transaction although its sync failed, and a start would
    /// then find it: nothing more may be written until the store is reopened.
    @discardableResult
    func unknown(_ failure: SQLiteFailure) -> StateError {
        let unknown = StateError(
            .readOnly,
            "\(StateError.unknownOutcome): \(location.database): \(failure)"
        )
        fault = unknown
        return unknown
    }

    /// Ends a transaction, with `byteCount` of keys and values, before its COMMIT: nothing of it
    /// was committed.
    func abandon(_ error: any Error, byteCount: Int64 = 0) throws -> Never {
        rollBack()
        guard let failure = error as? SQLiteFailure else { throw error }
        switch failure.primaryCode {
        case SQLITE_FULL:
            // This transaction fails; the next one has the room.
            if room.noteFull(byteCount: byteCount) { checkpoint(acknowledges: false) }
            throw StateError(
                .noSpace,
                "disk full: writes to \(location.database) are refused until there is room "
                    + "(\(failure))"
            )
        case SQLITE_BUSY:
            let holder = LockHolder.description(
                of: location.logIndex,
                bytes: LockHolder.writerBytes
            )
            throw StateError(
                .readOnly,
                "\(holder) holds the write lock of \(location.database): nothing was committed"
            )
        case SQLITE_NOMEM:
            throw StateError(
                .readOnly,
                "nothing was committed: \(location.database): \(failure)"
            )
        default: throw unknown(failure)
        }
    }

    func rollBack() {
        guard connection.isInTransaction else { return }
        do {
            try connection.execute("ROLLBACK")
        } catch  where fault == nil {
            fault = StateError(.readOnly, "\(location.database) cannot be written: \(error)")
        } catch {
            // The known fault says more.
        }
    }
}
