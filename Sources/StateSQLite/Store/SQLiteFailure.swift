import CSQLite
import Glibc
import StateEngine

/// What SQLite answered instead of doing what it was asked.
package struct SQLiteFailure: Error, CustomStringConvertible {
    /// The extended result code. https://www.sqlite.org/rescode.html
    let code: Int32
    /// What was being done, and SQLite's words for what came of it.
    package let description: String

    init(code: Int32, description: String) {
        self.code = code
        self.description = description
    }

    /// The failure that `database` remembers.
    init(_ code: Int32, of database: OpaquePointer?, during operation: String) {
        var words = database.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
        let errno = database.map { sqlite3_system_errno($0) } ?? 0
        if errno != 0, code & 0xFF == SQLITE_IOERR || code & 0xFF == SQLITE_CANTOPEN {
            words += ", " + String(cString: strerror(errno))
        }
        self.init(code: code, description: "\(operation): \(words) (SQLite code \(code))")
    }

    /// The code without the details in its upper bits.
    package var primaryCode: Int32 { code & 0xFF }

    /// Whether the database is not what was written: damaged, another file, or shorter (SQLITE_IOERR_SHORT_READ).
    var isDamage: Bool {
        [SQLITE_CORRUPT, SQLITE_NOTADB].contains(primaryCode) || code == SQLITE_IOERR | 2 << 8
    }
}

extension StateError {
    /// Why the store at `path` is not opened; it was left as it is.
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

    /// The store at `path` holds bytes that are not what was written.
    static func damaged(_ path: String, _ finding: String) -> StateError {
        StateError(.corrupt, "\(path) is damaged: \(finding)\(salvageAdvice(path))")
    }

    /// What follows a refusal: the command that makes a new store of what is whole.
    static func salvageAdvice(_ path: String) -> String {
        let store = path.hasSuffix("/stated.db") ? String(path.dropLast("/stated.db".count)) : path
        return "; it is left as it is, and `stated --salvage --data \(store) --to NEWDIRECTORY` "
            + "copies what is whole into a new store"
    }

    /// The finding that ``damaged(_:_:)`` was given for the store at `path`; the whole message of any other error.
    func finding(in path: String) -> String {
        let (before, after) = ("\(path) is damaged: ", StateError.salvageAdvice(path))
        guard message.hasPrefix(before), message.hasSuffix(after) else { return message }
        return String(message.dropFirst(before.count).dropLast(after.count))
    }
}
