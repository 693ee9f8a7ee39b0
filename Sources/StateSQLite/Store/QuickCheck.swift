import CLinux
import CSQLite
import StateEngine

/// SQLite's own check of the B-trees, on its own connection and thread while the rows are read.
///
/// Row checksums do not detect rows that a page hides: of 200 single-bit flips in a page's cell
/// count, 105 lost rows without an error, and this check found each.
/// https://www.sqlite.org/pragma.html#pragma_quick_check
final class QuickCheck {
    private let check: Check
    private var thread: UInt = 0

    /// Written by the thread of the check, read after it was joined: the proof of `@unchecked
    /// Sendable`.
    private final class Check: @unchecked Sendable {
        let connection: SQLiteConnection
        var answer: Result<String, SQLiteFailure> = .success("")

        init(_ connection: SQLiteConnection) { self.connection = connection }

        func run() {
            answer = Result { () throws(SQLiteFailure) in
                try connection.text("PRAGMA quick_check(1)")
            }
        }
    }

    /// Starts a check of the database at `path`.
    init(path: String, under lock: OwnerLock) throws(SQLiteFailure) {
        check = Check(try SQLiteConnection(path: path, under: lock))
        let context = Unmanaged.passRetained(check)
        let code = clinux_start_thread(&thread, QuickCheck.body, context.toOpaque(), 0)
        guard code == 0 else {
            context.release()
            throw SQLiteFailure(
                code: SQLITE_NOMEM,
                description: "SQLite's check cannot run: no thread can be started"
            )
        }
    }

    private static let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? =
        { context in
            guard let context else { return nil }
            let check = Unmanaged<Check>.fromOpaque(context).takeRetainedValue()
            check.run()
            return nil
        }

    /// Waits for the end.
    ///
    /// Either this or ``cancel()`` must be called, once.
    ///
    /// - Returns: The first fault; nil if there is none.
    func finish() throws(SQLiteFailure) -> String? {
        clinux_join_thread(thread)
        let answer = try check.answer.get()
        return answer == "ok" ? nil : answer.split(separator: "\n").joined(separator: " ")
    }

    /// Ends the check early.
    func cancel() {
        sqlite3_interrupt(check.connection.handle)
        clinux_join_thread(thread)
    }
}
