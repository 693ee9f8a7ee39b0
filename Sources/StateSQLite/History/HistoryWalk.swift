import CSQLite
import StateEngine

/// Reads the history in slices, each in a short transaction; checks nothing.
///
/// No number is used twice, so it can continue by number. A long transaction would keep the owner
/// from reusing its log.
final class HistoryWalk {
    /// How long a transaction may last.
    static let sliceTime: Duration = .milliseconds(50)

    /// The number of the last row that was passed on.
    private(set) var number: Int64 = 0

    private let connection: SQLiteConnection
    private let receive: (_ number: Int64, borrowing StoredChange, _ checksum: Int64) -> Void
    private var rowCount = 0
    private var deadline = ContinuousClock.now
    private var isInterrupted = false

    /// Starts before the first row.
    ///
    /// `receive` is called for each row; the bytes are valid only during that call.
    init(
        _ connection: SQLiteConnection,
        _ receive: @escaping (Int64, borrowing StoredChange, Int64) -> Void
    ) {
        self.connection = connection
        self.receive = receive
    }

    /// Reads until the end or until the time is over; returns whether it reached the end.
    ///
    /// In the same transaction, `begun` is called before the first row, and `ended` after the very
    /// last one.
    func readSlice(_ begun: () throws -> Void, _ ended: () throws -> Void) throws -> Bool {
        try connection.execute("BEGIN")
        defer { try? connection.execute("ROLLBACK") }
        try begun()
        let isAtEnd = try readRows()
        if isAtEnd { try ended() }
        return isAtEnd
    }

    private func readRows() throws(SQLiteFailure) -> Bool {
        deadline = ContinuousClock.now + HistoryWalk.sliceTime
        isInterrupted = false
        let columnCount = 1 + HistorySchema.columnCount
        do {
            try connection.receive(
                HistorySchema.receive(after: number),
                columnCount: columnCount
            ) { [unowned self] in take($0) }
        } catch {
            guard isInterrupted else { throw error }
        }
        return !isInterrupted
    }

    private func take(_ columns: SQLiteColumns) -> Bool {
        number = sqlite3_value_int64(columns[0])
        let checksum = sqlite3_value_int64(columns[HistorySchema.columnCount])
        receive(number, HistoryReader.change(in: columns + 1), checksum)
        rowCount += 1
        // Reading the clock costs as much as a row.
        if rowCount % 16 == 0, ContinuousClock.now >= deadline { isInterrupted = true }
        return !isInterrupted
    }
}
