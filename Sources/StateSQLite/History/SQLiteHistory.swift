import CSQLite
public import StateEngine

extension SQLiteBacking: HistoryBacking {
    /// Opens a second connection to the database, which reads concurrently with commits.
    public func openHistory() throws -> any HistoryReading {
        let history = SQLiteHistory(location, through: gate)
        try history.open()
        return history
    }
}

/// Reads the history through its own connection.
///
/// Rows are numbered in order of revision and ordinal, no number is used twice, and only compaction
/// removes rows. So a place is found by a search over the numbers; if its row was removed, the next
/// row is found.
final class SQLiteHistory: HistoryReading {
    private let location: StoreLocation
    private let gate: HistoryGate
    private let slot = HistoryGate.Slot()

    init(_ location: StoreLocation, through gate: HistoryGate) {
        self.location = location
        self.gate = gate
        gate.add(slot)
    }

    deinit {
        gate.enter()
        slot.connection = nil
        gate.remove(slot)
        gate.leave()
    }

    /// Opens the connection, so that errors are reported early.
    func open() throws {
        gate.enter()
        defer { gate.leave() }
        _ = try connect()
    }

    private func connect() throws -> HistoryConnection {
        if let connection = slot.connection { return connection }
        let connection = try HistoryConnection(location)
        slot.connection = connection
        return connection
    }

    func snapshot<R>(_ body: (_ compacted: Int64) throws -> R) throws -> R {
        gate.enter()
        defer { gate.leave() }
        do {
            let connection = try connect()
            try connection.begin.run()
            defer { try? connection.end.run() }
            return try body(try connection.metadata.required(.compacted))
        } catch let failure as SQLiteFailure where failure.isDamage {
            throw StateError.damaged(location.database, "\(failure)")
        }
    }

    private var connection: HistoryConnection {
        guard let connection = slot.connection else {
            preconditionFailure("the history was read outside of a snapshot")
        }
        return connection
    }

    func floors() throws -> HistoryFloors { try connection.metadata.floors() }

    func forEachChange(
        after place: HistoryPlace,
        through revision: Int64,
        _ receive: (borrowing StoredChange) -> Bool
    ) throws -> Bool {
        let connection = connection
        guard let first = try connection.finder.firstNumber(after: place) else { return true }
        connection.rows.bind(1, first)
        defer { connection.rows.reset() }
        while try connection.rows.step() {
            let change = try connection.change(in: connection.rows)
            if change.revision > revision { return true }
            if !receive(change) { return false }
        }
        return true
    }

    func withChange(
        at place: HistoryPlace,
        supersededBy _: HistoryPlace?,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> Bool {
        let connection = connection
        let before = HistoryPlace(revision: place.revision, ordinal: place.ordinal - 1)
        guard let number = try connection.finder.firstNumber(after: before) else { return false }
        connection.rows.bind(1, number)
        defer { connection.rows.reset() }
        guard try connection.rows.step() else { return false }
        let change = try connection.change(in: connection.rows)
        guard change.revision == place.revision, change.ordinal == place.ordinal else {
            return false
        }
        receive(change)
        return true
    }
}

/// A connection for reading the history, with its statements.
final class HistoryConnection {
    fileprivate let metadata: StoreMetadata
    fileprivate let finder: RowFinder
    fileprivate let rows: SQLiteStatement
    fileprivate let begin: SQLiteStatement
    fileprivate let end: SQLiteStatement
    private let connection: SQLiteConnection

    init(_ location: StoreLocation) throws {
        connection = try SQLiteConnection(path: location.database, reading: location.database)
        try connection.set("cache_size=-4096", "trusted_schema=OFF", "query_only=ON")
        metadata = StoreMetadata(connection)
        finder = try RowFinder(connection)
        rows = try connection.prepare(
            "SELECT \(HistorySchema.columns) FROM history WHERE number>=? ORDER BY number"
        )
        begin = try connection.prepare("BEGIN")
        end = try connection.prepare("COMMIT")
    }

    /// The change in the current row, checked; its bytes are valid until the next step.
    fileprivate func change(in row: SQLiteStatement) throws(StateError) -> StoredChange {
        let previousRevision = row.number(at: 10)
        let change = StoredChange(
            revision: row.number(at: 0),
            ordinal: Int32(truncatingIfNeeded: row.number(at: 1)),
            key: row.bytes(at: 2) ?? Bytes(start: nil, count: 0),
            value: row.bytes(at: 3),
            created: row.number(at: 4),
            owner: UInt32(truncatingIfNeeded: row.number(at: 5)),
            version: row.number(at: 6),
            time: row.number(at: 7),
            expires: row.isNull(at: 8) ? nil : row.number(at: 8),
            cause: row.bytes(at: 9) ?? Bytes(start: nil, count: 0),
            previousRevision: previousRevision,
            previousOrdinal: previousRevision == 0
                ? 0 : Int32(truncatingIfNeeded: row.number(at: 11))
        )
        guard row.number(at: 12) == Int64(RowChecksum.of(change)) else {
            throw .damaged(
                connection.path,
                "the row of revision \(change.revision), ordinal \(change.ordinal) does not match "
                    + "its checksum"
            )
        }
        return change
    }
}

/// The place of a row.
package struct FoundRow: Hashable {
    package var number: Int64
    package var place: HistoryPlace

    package init(number: Int64, place: HistoryPlace) {
        (self.number, self.place) = (number, place)
    }
}

/// Finds rows by their place, with a search over the numbers that assumes evenly rising revisions
/// between two rows.
final class RowFinder {
    private let first: SQLiteStatement
    private let last: SQLiteStatement
    private let next: SQLiteStatement

    private typealias Row = FoundRow

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        let columns = "SELECT number, revision, ordinal FROM history"
        first = try connection.prepare("\(columns) ORDER BY number LIMIT 1")
        last = try connection.prepare("\(columns) ORDER BY number DESC LIMIT 1")
        next = try connection.prepare("\(columns) WHERE number>=? ORDER BY number LIMIT 1")
    }

    /// The number of the first row after `place`; nil if there is none.
    func firstNumber(after place: HistoryPlace) throws(SQLiteFailure) -> Int64? {
        try firstRow(after: place)?.number
    }

    /// The lowest number of a row that is at least `number`; nil if all rows have lower ones.
    func firstNumber(from number: Int64) throws(SQLiteFailure) -> Int64? {
        next.bind(1, number)
        return try row(next)?.number
    }

    /// The newest row; nil if there is none.
    func lastRow() throws(SQLiteFailure) -> FoundRow? { try row(last) }

    /// The first row after `place`; nil if there is none.
    func firstRow(after place: HistoryPlace) throws(SQLiteFailure) -> FoundRow? {
        guard var low = try row(first), let last = try row(last), last.place > place else {
            return nil
        }
        guard low.place <= place else { return low }
        // Invariant: `low` is not after the place, `best` is, and no row is between `high` and
        // `best`.
        var high = last.number
        var best = last
        var guesses = false
        while low.number + 1 < high {
            // Alternates, so that unevenly rising revisions cost at most twice the logarithm.
            guesses.toggle()
            let middle = low.number + (high - low.number) / 2
            let number = guesses ? guess(place, low, best, high) : middle
            next.bind(1, number)
            guard let row = try row(next), row.number < high else {
                high = number
                continue
            }
            if row.place > place {
                best = row
                high = number
            } else {
                low = row
            }
        }
        return best
    }

    private func guess(_ place: HistoryPlace, _ low: Row, _ best: Row, _ high: Int64) -> Int64 {
        let span = Double(best.place.revision - low.place.revision)
        let share = span > 0 ? Double(place.revision - low.place.revision) / span : 0.5
        let number = low.number + 1 + Int64(share * Double(best.number - low.number))
        return min(max(number, low.number + 1), high - 1)
    }

    private func row(_ statement: SQLiteStatement) throws(SQLiteFailure) -> Row? {
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return Row(
            number: statement.number(at: 0),
            place: HistoryPlace(
                revision: statement.number(at: 1),
                ordinal: Int32(truncatingIfNeeded: statement.number(at: 2))
            )
        )
    }
}
