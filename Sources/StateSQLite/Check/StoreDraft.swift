import CSQLite
package import StateEngine
package import StateLog
import StateModel
import StatePlatform

/// A settled store that is written as a whole: the rows as they were at a revision, then the changes
/// after it, which keep their places.
///
/// Nothing in it counts before ``finish(_:)``, so nothing of the database is synced before. For one
/// thread.
package final class StoreDraft {
    /// What the new store says of itself.
    package struct Ending {
        /// Revisions continue above it.
        package var leastRevision: Int64
        /// What rules have removed beyond the revision of the rows.
        package var floors: HistoryFloors
        package var metadata: [String: String]

        package init(leastRevision: Int64, floors: HistoryFloors, metadata: [String: String]) {
            (self.leastRevision, self.floors, self.metadata) = (leastRevision, floors, metadata)
        }
    }

    private let location: StoreLocation
    private let connection: SQLiteConnection
    private let rows: RowTable
    /// Older versions, which are only carried.
    private let past: RowTable
    private let log: StateLog
    private let epoch: Epoch
    /// The revision of the rows: from it on all of the past is there.
    private let base: Int64
    /// Keys whose older versions were too large together to be carried.
    private var floors = HistoryFloors()
    private var last = HistoryPlace(revision: 0, ordinal: -1)
    /// Deletes that are in the log, and that no change has superseded yet.
    private var deletes: Set<HistoryPlace> = []
    private var frame: Frame?

    /// The frame that is being made.
    private struct Frame {
        var coder: CommitCoder
        var time: Int64
        var revision: Int64 = 0
        var cause: [UInt8] = []
        var carriedByteCount = 0
        var uncarried: [[UInt8]] = []

        var isLarge: Bool { coder.byteCount + carriedByteCount >= StoreDraft.frameByteCount }
    }

    /// A frame is written once it has so many bytes, at the end of a commit.
    private static let frameByteCount = 256 << 10

    /// Makes an empty store.
    ///
    /// - Parameters:
    ///   - location: The database.
    ///   - directory: That of the log.
    ///   - base: The revision of the rows.
    ///   - lock: That of whoever makes the store.
    /// - Throws: ``StateError``; files may be left, of the names in ``StoreLocation/draftFiles``.
    package init(
        at location: StoreLocation,
        log directory: String,
        base: Int64,
        under lock: OwnerLock
    ) throws {
        (self.location, self.base) = (location, base)
        try SettledDatabase.create(at: location)
        (connection, rows) = try StoreDraft.open(location.database, under: lock)
        epoch = try SettledDatabase.facts(connection).0.log
        past = try StoreDraft.makePast(location.past)
        var options = StateLog.Options()
        // All of it is written at once: the segments are large.
        options.soon = .max
        let start = LogStart(epoch: epoch, place: .none)
        do {
            let files = try LogDirectory(directory)
            log = try StateLog(files, options, from: start, after: base) { _, _ in }
        } catch let failure as LogFileFailure {
            throw StateError(.storage, "\(directory) cannot be made: \(failure.sentence)")
        }
    }

    private static func open(
        _ path: String,
        under lock: OwnerLock
    ) throws(StateError) -> (SQLiteConnection, RowTable) {
        do throws(SQLiteFailure) {
            let connection = try SQLiteConnection(path: path, under: lock)
            try connection.set("synchronous=OFF", "cache_size=-65536")
            return (connection, try RowTable(connection))
        } catch {
            throw failure(error, of: path)
        }
    }

    private static func makePast(_ path: String) throws(StateError) -> RowTable {
        unlink(path)
        let descriptor = StatePlatform.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StateError(.storage, "\(path) cannot be created: \(lastSystemError())")
        }
        close(descriptor)
        do throws(SQLiteFailure) {
            let connection = try SQLiteConnection(path: path)
            try connection.set("journal_mode=OFF", "synchronous=OFF")
            try connection.execute(SettledDatabase.newestTable)
            return try RowTable(connection)
        } catch {
            throw failure(error, of: path)
        }
    }

    private static func failure(_ failure: SQLiteFailure, of path: String) -> StateError {
        StateError(
            failure.primaryCode == SQLITE_FULL ? .noSpace : .storage,
            "\(path) cannot be written: \(failure)"
        )
    }

    private func attempt<Result>(
        _ body: () throws(SQLiteFailure) -> Result
    ) throws(StateError) -> Result {
        do throws(SQLiteFailure) { return try body() } catch {
            throw StoreDraft.failure(error, of: location.database)
        }
    }

    // MARK: Rows

    /// Takes a change up to the revision of the rows, unless a later one of the same key was taken.
    package func put(_ change: borrowing StoredChange) throws(StateError) {
        let row = SettledRow(change: copy change, checksum: CommitCoder.checksum(of: change))
        try attempt { () throws(SQLiteFailure) in try rows.put(row) }
    }

    /// Takes a change of which only its successor in the log will tell.
    package func remember(_ change: borrowing StoredChange) throws(StateError) {
        let row = SettledRow(change: copy change, checksum: CommitCoder.checksum(of: change))
        try attempt { () throws(SQLiteFailure) in try past.put(row) }
    }

    // MARK: Changes

    /// Appends a change after the revision of the rows, unless it is not after the last one.
    ///
    /// What it supersedes is carried if the log does not have it.
    ///
    /// - Parameters:
    ///   - change: The change.
    ///   - link: What is known of the one that it supersedes.
    /// - Throws: ``StateError/Code/noSpace`` or ``StateError/Code/storage``.
    package func append(
        _ change: borrowing StoredChange,
        _ link: ChangeLink = ChangeLink()
    ) throws(StateError) {
        guard change.place > last else { return }
        last = change.place
        var link = link
        if let place = change.previousPlace { try complete(&link, of: change.key, at: place) }
        if change.value == nil { deletes.insert(change.place) }
        try begin(change)
        if let carried = link.carried {
            let byteCount = carried.value?.count ?? 0
            if (frame?.carriedByteCount ?? 0) + byteCount > CommitCoder.carriedByteCount {
                link.carried = nil
                frame?.uncarried.append(Array(change.key))
            } else {
                frame?.carriedByteCount += byteCount
            }
        }
        let row = copy change
        let cause = frame?.cause ?? []
        cause.withUnsafeBytes { frame?.coder.append(row, link, cause: $0) }
    }

    private func complete(
        _ link: inout ChangeLink,
        of key: Bytes,
        at place: HistoryPlace
    ) throws(StateError) {
        if place.revision > base {
            link.carried = nil
            if deletes.remove(place) != nil { link.isAfterDelete = true }
        } else if link.carried?.place != place {
            let found = try attempt { () throws(SQLiteFailure) -> PastChange? in
                if let row = try rows.change(of: key, at: place) { return row }
                return try past.change(of: key, at: place)
            }
            link.carried = found?.value == nil ? nil : found
            if let found { link.isAfterDelete = found.value == nil }
        }
    }

    private func begin(_ change: borrowing StoredChange) throws(StateError) {
        let (revision, time) = (change.revision, change.time)
        guard frame?.revision != revision else { return }
        // A commit is in one frame.
        if frame?.isLarge ?? false { try writeFrame() }
        var begun = frame.take() ?? Frame(coder: CommitCoder(at: time), time: time)
        begun.revision = revision
        begun.cause = Array(change.cause)
        begun.coder.begin(revision, at: time, cause: change.cause)
        frame = begun
    }

    private func writeFrame() throws(StateError) {
        guard let written = frame.take() else { return }
        let segment = log.endPlace.segment
        try log.append(written.coder.commits, at: written.time)
        if !written.uncarried.isEmpty {
            floors.raise(keys: written.uncarried, to: written.revision)
        }
        guard log.endPlace.segment != segment else { return }
        try log.sync()
        try log.prepareSpare()
    }

    // MARK: The end

    /// Completes the store, and makes all of it durable but for the names of its files.
    ///
    /// - Throws: ``StateError/Code/noSpace`` or ``StateError/Code/storage``.
    package func finish(_ ending: Ending) throws(StateError) {
        try writeFrame()
        try log.sync()
        unlink(location.past)
        var facts = SettledFacts(epoch: epoch)
        (facts.revision, facts.floor) = (base, base)
        facts.leastRevision = ending.leastRevision
        facts.identity = FileIdentity(path: location.database)
        floors.raise(to: ending.floors)
        floors.drop(through: base)
        try attempt { () throws(SQLiteFailure) in
            try rows.finish()
            try connection.set("synchronous=FULL")
            try connection.transaction { () throws(SQLiteFailure) in
                // Nobody may ask for what was before them.
                try connection.execute("DELETE FROM newest WHERE value IS NULL")
                facts.rowCount = try connection.number("SELECT count(*) FROM newest")
                let writer = try MetaWriter(connection)
                for (name, text) in ending.metadata { try writer.write(name, text) }
                if !floors.isEmpty { try writer.write(SQLiteBacking.Name.floors, floors.text) }
                try writer.write(facts)
            }
            _ = try connection.text("PRAGMA wal_checkpoint(TRUNCATE)")
        }
        connection.checkpointsOnClose()
    }
}

/// A table of rows, of which each key has the newest that was put.
private final class RowTable {
    private let connection: SQLiteConnection
    private let upsert: SQLiteStatement
    private let select: SQLiteStatement
    /// Rows since the transaction began.
    private var pendingCount = 0

    private static let pendingLimit = 10_000

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        self.connection = connection
        upsert = try connection.prepare(
            """
            INSERT INTO newest VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            ON CONFLICT(key) DO UPDATE SET value=?2, revision=?3, ordinal=?4, created=?5, owner=?6,
                version=?7, time=?8, expires=?9, cause=?10, checksum=?11
            WHERE (?3, ?4) > (revision, ordinal)
            """
        )
        select = try connection.prepare(
            "SELECT \(SettledDatabase.columns) FROM newest WHERE key=?1"
        )
    }

    func put(_ row: borrowing SettledRow) throws(SQLiteFailure) {
        if pendingCount == 0 { try connection.execute("BEGIN IMMEDIATE") }
        upsert.bind(row)
        try upsert.run()
        pendingCount += 1
        if pendingCount == RowTable.pendingLimit { try finish() }
    }

    /// The row of a key, if it is the change at a place.
    func change(of key: Bytes, at place: HistoryPlace) throws(SQLiteFailure) -> PastChange? {
        Parameters(statement: select.handle, first: 0).bind(1, text: key)
        defer { select.reset() }
        guard try select.step(), select.number(at: 2) == place.revision,
            select.number(at: 3) == Int64(place.ordinal)
        else { return nil }
        let change = StoredChange(settledRow: select)
        return PastChange(
            at: place,
            created: change.created,
            owner: change.owner,
            version: change.version,
            time: change.time,
            expires: change.expires,
            cause: Array(change.cause),
            value: change.value.map { Array($0) }
        )
    }

    /// Ends the transaction.
    func finish() throws(SQLiteFailure) {
        if pendingCount > 0 { try connection.execute("COMMIT") }
        pendingCount = 0
    }
}

extension StoredChange {
    /// The row at which a statement is that selects ``SettledDatabase/columns``; its bytes are valid until
    /// the next step.
    init(settledRow row: SQLiteStatement) {
        let none = Bytes(start: nil, count: 0)
        self.init(
            revision: row.number(at: 2),
            ordinal: Int32(truncatingIfNeeded: row.number(at: 3)),
            key: row.bytes(at: 0) ?? none,
            value: row.bytes(at: 1),
            created: row.number(at: 4),
            owner: UInt32(truncatingIfNeeded: row.number(at: 5)),
            version: row.number(at: 6),
            time: row.number(at: 7),
            expires: row.isNull(at: 8) ? nil : row.number(at: 8),
            cause: row.bytes(at: 9) ?? none,
            previousRevision: 0,
            previousOrdinal: 0
        )
    }
}

extension StoreLocation {
    /// Versions that a draft carries later.
    var past: String { database + ".past" }

    /// What a draft has made, but for its log.
    package var draftFiles: [String] {
        [database, log, logIndex, database + ".new", past, lock]
    }
}
