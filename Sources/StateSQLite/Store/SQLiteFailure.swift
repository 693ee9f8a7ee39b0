import CSQLite
import StateEngine
import StatePlatform

/// An error of SQLite.
package struct SQLiteFailure: Error, CustomStringConvertible {
    /// The extended result code. https://www.sqlite.org/rescode.html
    let code: Int32
    /// The failed operation, and SQLite's error message.
    package let description: String
    /// The error of the system call that failed; 0 if none did.
    private let systemError: Int32

    init(code: Int32, description: String, systemError: Int32 = 0) {
        self.code = code
        self.description = description
        self.systemError = systemError
    }

    /// The last failure of `database`.
    init(_ code: Int32, of database: OpaquePointer?, during operation: String) {
        var words = database.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
        let errno = database.map { sqlite3_system_errno($0) } ?? 0
        if errno != 0, code & 0xFF == SQLITE_IOERR || code & 0xFF == SQLITE_CANTOPEN {
            words += ", " + String(cString: strerror(errno))
        }
        self.init(
            code: code,
            description: "\(operation): \(words) (SQLite code \(code))",
            systemError: errno
        )
    }

    /// The code without the details in its upper bits.
    package var primaryCode: Int32 { code & 0xFF }

    /// Whether another process holds a lock; nothing was done.
    var isOfAnotherProcess: Bool { primaryCode == SQLITE_BUSY }

    /// Whether a sync failed (SQLITE_IOERR_FSYNC, a macro that Swift does not see).
    var isOfSync: Bool { code == SQLITE_IOERR | 4 << 8 }

    /// Whether the file system refused a write for lack of room.
    var isOfRoom: Bool {
        // SQLite has no code of its own for a quota.
        primaryCode == SQLITE_FULL
            || primaryCode == SQLITE_IOERR && [ENOSPC, EDQUOT].contains(systemError)
    }

    /// Whether the database is damaged, another kind of file, or too short
    /// (SQLITE_IOERR_SHORT_READ).
    var isDamage: Bool {
        [SQLITE_CORRUPT, SQLITE_NOTADB].contains(primaryCode) || code == SQLITE_IOERR | 2 << 8
    }
}

extension StateError {
    /// The error of a store at `path` that could not be opened; the store is unchanged.
    static func cannotOpen(_ path: String, _ failure: SQLiteFailure) -> StateError {
        switch failure.primaryCode {
        case SQLITE_BUSY, SQLITE_LOCKED:
            let holder = LockHolder.description(
                of: path + "-shm",
                bytes: LockHolder.writerBytes
            )
            return StateError(.storage, "\(path) is in use by \(holder): \(failure)")
        case SQLITE_FULL:
            return StateError(.noSpace, "\(path) cannot be opened, the disk is full: \(failure)")
        case SQLITE_IOERR where failure.code != SQLITE_IOERR | 33 << 8,
            SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_READONLY, SQLITE_AUTH, SQLITE_NOMEM:
            return StateError(.storage, "\(path) cannot be opened: \(failure)")
        default:
            return .damaged(path, failure.description)
        }
    }

    /// The error of a damaged store at `path`.
    static func damaged(_ path: String, _ finding: String) -> StateError {
        StateError(.corrupt, "\(path) is damaged: \(finding)\(salvageAdvice(path))")
    }

    /// The end of such a message: the command that makes a new store of the intact part.
    static func salvageAdvice(_ path: String) -> String {
        let store = path.hasSuffix("/stated.db") ? String(path.dropLast("/stated.db".count)) : path
        return "; it was not changed; `stated --salvage --data \(store) --to NEWDIRECTORY` "
            + "copies the intact part into a new store"
    }

    /// The finding that was given to ``damaged(_:_:)`` for the store at `path`; for any other error
    /// its message.
    func finding(in path: String) -> String {
        let (before, after) = ("\(path) is damaged: ", StateError.salvageAdvice(path))
        guard message.hasPrefix(before), message.hasSuffix(after) else { return message }
        return String(message.dropFirst(before.count).dropLast(after.count))
    }
}
