import CLinux
import CSQLite
import StateEngine
import StateLog
import StatePlatform
import StateSystem

/// The current values up to a place in the log, in SQLite.
///
/// ```
/// newest    one row for each key, in the order of keys; a deleted key keeps a row without a value
///           until nobody may ask for its history any more
/// deletes   an index of those rows
/// meta      facts about the store, and metadata by name
/// entries   the current state, for people: sqlite3 stated.db 'SELECT * FROM entries'
/// ```
///
/// A row has the checksum that its change had in the log (`CommitCoder`). Used by one thread at a
/// time.
final class SettledDatabase {
    static let formatVersion: Int32 = 2

    static let newestTable = """
        CREATE TABLE newest(
            key TEXT PRIMARY KEY, value BLOB, revision INTEGER, ordinal INTEGER, created INTEGER,
            owner INTEGER, version INTEGER, time INTEGER, expires INTEGER, cause TEXT,
            checksum INTEGER) WITHOUT ROWID
        """
    private static let deletesIndex = "CREATE INDEX deletes ON newest(revision) WHERE value IS NULL"
    private static let metaTable = """
        CREATE TABLE meta(name TEXT PRIMARY KEY, value, checksum INTEGER) WITHOUT ROWID
        """
    private static let entriesView = """
        CREATE VIEW entries AS
        SELECT key, CAST(value AS TEXT) AS value, revision,
            strftime('%Y-%m-%d %H:%M:%f', time / 1000.0, 'unixepoch', 'localtime') AS time, cause AS by
        FROM newest WHERE value IS NOT NULL
        """
    static let columns =
        "key, value, revision, ordinal, created, owner, version, time, expires, cause, checksum"
    static let columnCount = 11

    let location: StoreLocation
    private let connection: SQLiteConnection
    private let writer: NewestWriter
    /// How many bytes of pages a transaction that only removes may put into SQLite's own log, about.
    var transactionByteCount = Int.max

    /// SQLite's own log is cut back to it, and keeps that room for the transactions that make more.
    static let logByteCount = 1 << 20

    // MARK: Making and opening

    /// Makes an empty database, completely or not at all.
    static func create(at location: StoreLocation) throws(StateError) {
        let draft = location.database + ".new"
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(draft + suffix) }
        let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StateError(.storage, "\(draft) cannot be created: \(lastSystemError())")
        }
        close(descriptor)
        do throws(SQLiteFailure) { try fill(draft) } catch {
            unlink(draft)
            throw StateError.cannotOpen(draft, error)
        }
        guard rename(draft, location.database) == 0, WholeFile.syncDirectory(location.directory)
        else {
            throw StateError(
                .storage,
                "\(location.database) cannot be created: \(lastSystemError())"
            )
        }
    }

    private static func fill(_ path: String) throws(SQLiteFailure) {
        let connection = try SQLiteConnection(path: path)
        try connection.set(
            "page_size=\(StoreHeader.pageByteCount)",
            "auto_vacuum=INCREMENTAL",
            "encoding='UTF-8'",
            // A draft needs no journal, and one sync at the end.
            "journal_mode=MEMORY",
            "synchronous=OFF"
        )
        try connection.transaction { () throws(SQLiteFailure) in
            try connection.execute("PRAGMA application_id=\(StoreHeader.applicationID)")
            try connection.execute("PRAGMA user_version=\(formatVersion)")
            // Order matters: see StoreHeader.
            for definition in [entriesView, newestTable, deletesIndex, metaTable] {
                try connection.execute(definition)
            }
            var facts = SettledFacts(epoch: .random())
            facts.identity = FileIdentity(path: path)
            try MetaWriter(connection).write(facts)
        }
        try connection.useLog()
        try connection.sync()
        connection.checkpointsOnClose()
    }

    /// Opens the database and checks its header, format and tables.
    ///
    /// - Throws: ``StateError``; the files are as they were.
    init(_ location: StoreLocation, under lock: OwnerLock) throws {
        self.location = location
        var connection = try SQLiteConnection(path: location.database, under: lock)
        try StoreHeader.checkHeader(of: connection)
        try SettledDatabase.checkSchema(connection)
        try StoreHeader.checkAdditions(connection, of: "trigger")
        guard !connection.isReadOnly else {
            throw StateError(.storage, "\(location.database) is not writable")
        }
        if try connection.text("PRAGMA journal_mode") != "wal" {
            // Somebody has left it; another connection has it from the beginning.
            try connection.useLog()
            connection = try SQLiteConnection(path: location.database, under: lock)
        }
        self.connection = connection
        try connection.set(
            "synchronous=NORMAL",
            "wal_autocheckpoint=0",
            "journal_size_limit=\(SettledDatabase.logByteCount)",
            "temp_store=MEMORY",
            // Pages are written, and synced in pieces, while a transaction goes on.
            "cache_size=-1024",
            "trusted_schema=OFF"
        )
        // A foreign reader holds up settling, and nothing else.
        connection.waitForLocks(.zero)
        writer = try NewestWriter(connection)
        for file in [SQLiteConnection.File.database, .log] {
            try connection.syncPieces(of: file, each: SettledDatabase.syncedByteCount)
        }
    }

    /// After so many bytes SQLite's files are synced: a commit beside 14 MB that are synced at once took
    /// up to 28 ms.
    private static let syncedByteCount = 256 << 10

    /// Nobody commits any more: its files are synced after as much as a disk takes well.
    func syncSeldom() { connection.setPieces(16 << 20) }

    /// Checks that the tables are those that were made.
    static func checkSchema(_ connection: SQLiteConnection) throws {
        let path = connection.path
        for (name, expected) in [
            ("newest", newestTable), ("deletes", deletesIndex), ("meta", metaTable),
            ("entries", entriesView),
        ] {
            let found = try connection.text("SELECT sql FROM sqlite_schema WHERE name='\(name)'")
            guard found == expected else {
                throw StateError.damaged(
                    path,
                    found.isEmpty ? "\(name) is missing" : "the definition of \(name) is altered"
                )
            }
        }
    }

    // MARK: Reading

    /// The facts, and the metadata by name.
    func facts() throws -> (SettledFacts, metadata: [String: String]) {
        try SettledDatabase.facts(connection)
    }

    static func facts(
        _ connection: SQLiteConnection
    ) throws -> (SettledFacts, metadata: [String: String]) {
        let select = try connection.prepare("SELECT name, value, checksum FROM meta")
        var texts: [String: String] = [:]
        while try select.step() {
            let (name, text) = (select.text(at: 0), select.text(at: 1))
            guard select.number(at: 2) == Int64(MetaWriter.checksum(name, text)) else {
                throw StateError.damaged(
                    connection.path,
                    "'\(StateError.printable(name))' in meta does not match its checksum"
                )
            }
            texts[name] = text
        }
        let facts = try SettledFacts(taking: &texts, of: connection.path)
        return (facts, texts)
    }

    /// Passes on all rows, in the order of keys; their bytes are valid only during the call.
    ///
    /// - Returns: How many there are.
    /// - Throws: ``StateError/Code/corrupt``, naming the first damaged row.
    func readAll(_ receive: (borrowing StoredChange) -> Void) throws -> Int64 {
        var count: Int64 = 0
        _ = try SettledDatabase.forEachRow(of: connection) { change in
            count += 1
            receive(change)
            return true
        }
        return count
    }

    /// Passes on rows, in the order of keys; their bytes are valid only during the call.
    ///
    /// - Parameters:
    ///   - connection: To the database.
    ///   - key: Only keys after this one.
    ///   - receive: Takes a row; returns whether it takes more.
    /// - Returns: Whether all of them were passed.
    /// - Throws: ``StateError/Code/corrupt``, naming the first damaged row.
    static func forEachRow(
        of connection: SQLiteConnection,
        after key: [UInt8]? = nil,
        _ receive: (borrowing StoredChange) -> Bool
    ) throws -> Bool {
        var (isStopped, damage): (Bool, StateError?) = (false, nil)
        let hex = key?.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }
        let select =
            hex.map {
                """
                SELECT receive(\(columns)) FROM newest WHERE key > CAST(x'\($0.joined())' AS TEXT)
                """
            } ?? "SELECT receive(\(columns)) FROM newest"
        return try withoutActuallyEscaping(receive) { receive in
            do {
                try connection.receive(
                    select,
                    columnCount: columnCount
                ) { columns in
                    let change = change(in: columns)
                    let checksum = sqlite3_value_int64(columns[10])
                    guard checksum == Int64(CommitCoder.checksum(of: change)), change.isPossible
                    else {
                        damage = .damaged(
                            connection.path,
                            "the row of \(StateError.quoted(change.key)) is not the one that was written"
                        )
                        return false
                    }
                    isStopped = !receive(change)
                    return !isStopped
                }
            } catch {
                guard isStopped else { throw damage ?? error }
                return false
            }
            return true
        }
    }

    static func change(in columns: SQLiteColumns) -> StoredChange {
        StoredChange(
            revision: sqlite3_value_int64(columns[2]),
            ordinal: Int32(truncatingIfNeeded: sqlite3_value_int64(columns[3])),
            key: SQLiteColumn.bytes(of: columns[0]),
            value: SQLiteColumn.value(of: columns[1]),
            created: sqlite3_value_int64(columns[4]),
            owner: UInt32(truncatingIfNeeded: sqlite3_value_int64(columns[5])),
            version: sqlite3_value_int64(columns[6]),
            time: sqlite3_value_int64(columns[7]),
            expires: SQLiteColumn.expiry(of: columns[8]),
            cause: SQLiteColumn.bytes(of: columns[9]),
            previousRevision: 0,
            previousOrdinal: 0
        )
    }

    /// Checks that all pages are where they belong, which takes a while.
    ///
    /// - Returns: The first fault; nil if there is none.
    func findFault(under lock: OwnerLock) throws(SQLiteFailure) -> String? {
        try QuickCheck(path: location.database, under: lock).finish()
    }

    // MARK: Settling

    /// How many of some rows a transaction may have that puts so many bytes of pages into SQLite's own
    /// log, about, and at least one.
    static func count(of rows: ArraySlice<NewestChange>, upTo byteCount: Int) -> Int {
        var left = byteCount
        let count = rows.prefix { row in
            left -= pageByteCount(of: row)
            return left >= 0
        }.count
        return max(count, min(rows.count, 1))
    }

    /// How many bytes of pages a row puts into SQLite's own log: the page that it is on, and perhaps another,
    /// besides those of a long value.
    static func pageByteCount(of row: NewestChange) -> Int {
        2 * StoreHeader.pageByteCount + row.byteCount
    }

    /// How many rows or pages a transaction removes that may be anywhere.
    private func rowCount(upTo limit: Int) -> Int {
        max(1, min(limit, transactionByteCount / (4 * StoreHeader.pageByteCount)))
    }

    /// Writes the newest change of each key, metadata and the facts, in one transaction, which is not
    /// synced.
    ///
    /// - Parameters:
    ///   - rows: In the order of keys, each key once.
    ///   - metadata: By name; nil removes it.
    ///   - facts: Those after it; the count of rows is brought up to date.
    ///   - choosePace: Called now and then: whether this thread gives way may have changed.
    /// - Returns: The deletes that are forgotten, because nobody may ask for what was before them.
    /// - Throws: SQLite's error; nothing was written, or nobody can say.
    func settle(
        _ rows: ArraySlice<NewestChange>,
        metadata: [String: String?],
        _ facts: inout SettledFacts,
        choosePace: () -> Void
    ) throws(SQLiteFailure) -> [CompactionStep.CompactedDelete] {
        var forgotten: [CompactionStep.CompactedDelete] = []
        var rowCount = facts.rowCount
        try transaction { () throws(SQLiteFailure) in
            for index in rows.indices {
                // In the order of keys they are anywhere in memory.
                if index + 8 < rows.endIndex { rows[index + 8].prefetch() }
                if index % 8 == 0 { clinux_let_others_run() }
                if index % 1_024 == 0 { choosePace() }
                if try writer.write(rows[index]) { rowCount += 1 }
            }
            facts.rowCount = rowCount
            let writer = try MetaWriter(connection)
            for (name, text) in metadata { try writer.write(name, text) }
            forgotten = try forgetInTransaction(&facts)
        }
        return forgotten
    }

    /// Forgets deletes that nobody may ask for any more, a thousand at most, and writes the facts.
    ///
    /// - Returns: Those that are forgotten.
    /// - Throws: As ``settle(_:metadata:_:)``.
    func forgetDeletes(
        _ facts: inout SettledFacts
    ) throws(SQLiteFailure) -> [CompactionStep.CompactedDelete] {
        var forgotten: [CompactionStep.CompactedDelete] = []
        try transaction { () throws(SQLiteFailure) in
            forgotten = try forgetInTransaction(&facts)
        }
        return forgotten
    }

    private func forgetInTransaction(
        _ facts: inout SettledFacts
    ) throws(SQLiteFailure) -> [CompactionStep.CompactedDelete] {
        var forgotten: [CompactionStep.CompactedDelete] = []
        // A few with each transaction, so that none takes long, and none that is newer than the place.
        let delete = try connection.prepare(
            """
            DELETE FROM newest WHERE key IN (SELECT key FROM newest
            WHERE value IS NULL AND revision <= \(min(facts.floor, facts.revision)) LIMIT \(rowCount(upTo: 1_000)))
            RETURNING key, revision
            """
        )
        while try delete.step() {
            let key = Array(delete.text(at: 0).utf8)
            forgotten.append(.init(key: key, revision: delete.number(at: 1)))
        }
        facts.rowCount -= Int64(forgotten.count)
        try MetaWriter(connection).write(facts)
        return forgotten
    }

    /// Gives some free pages back to the file system, with the next checkpoint.
    ///
    /// - Returns: Whether there are more.
    func giveBack() throws(SQLiteFailure) -> Bool {
        guard try freePageCount() > 0 else { return false }
        try connection.execute("PRAGMA incremental_vacuum(\(rowCount(upTo: 256)))")
        return true
    }

    private func freePageCount() throws(SQLiteFailure) -> Int64 {
        try connection.number("PRAGMA freelist_count")
    }

    /// The bytes of its free pages.
    func freeByteCount() throws(SQLiteFailure) -> Int64 {
        try freePageCount() * Int64(StoreHeader.pageByteCount)
    }

    /// Writes facts, durably.
    func write(_ facts: SettledFacts) throws(SQLiteFailure) {
        try connection.set("synchronous=FULL")
        defer { try? connection.set("synchronous=NORMAL") }
        try transaction { () throws(SQLiteFailure) in
            try MetaWriter(connection).write(facts)
        }
    }

    private func transaction(_ body: () throws(SQLiteFailure) -> Void) throws(SQLiteFailure) {
        do throws(SQLiteFailure) { try connection.transaction(body) } catch {
            if connection.isInTransaction { try? connection.execute("ROLLBACK") }
            throw error
        }
    }

    /// Makes durable what this connection sees, though a sync before it was opened may have failed.
    ///
    /// Before the first checkpoint: that puts pages into the database that would be newer than what a
    /// loss of power leaves of SQLite's log.
    ///
    /// Wholly means the database, too; otherwise only SQLite's log is, which still has all pages that a
    /// process that ended may not have synced.
    ///
    /// - Throws: SQLite's error; nobody can say what the disk has.
    func confirm(wholly: Bool) throws(SQLiteFailure) {
        // Nobody else may write meanwhile.
        try transaction { () throws(SQLiteFailure) in
            try connection.rewrite(.log)
            if wholly { try connection.rewrite(.database) }
        }
    }

    /// Makes everything durable that was settled, and moves SQLite's own log into the database as far
    /// as readers permit.
    ///
    /// - Returns: Whether all of it was moved.
    /// - Throws: SQLite's error; nobody can say what the disk has, so the database must be opened again.
    func checkpoint() throws(SQLiteFailure) -> Bool {
        var (frames, moved): (Int32, Int32) = (0, 0)
        let code = sqlite3_wal_checkpoint_v2(
            connection.handle,
            "main",
            SQLITE_CHECKPOINT_PASSIVE,
            &frames,
            &moved
        )
        guard code == SQLITE_OK else { throw connection.failure(code, during: "checkpoint") }
        // SQLite syncs the database only if it has moved all, and never moves these pages again.
        try connection.sync()
        return moved >= frames
    }

    func checkpointsOnClose() { connection.checkpointsOnClose() }
}

/// What `meta` says of a store.
struct SettledFacts: Hashable {
    var epoch: Epoch
    /// The identity of the log: a copy has it together with the original.
    var log: Epoch
    /// As in the log; 0 before the log was begun.
    var life = LogLife()
    /// The rows have everything up to there.
    var place = LogPlace.none
    /// The last revision before that place.
    var revision: Int64 = 0
    /// Below this revision nobody may ask for the past: deleted keys up to it are forgotten.
    var floor: Int64 = 0
    /// How many rows there are, those of deleted keys included.
    var rowCount: Int64 = 0
    /// A lower bound of the last revision, of a copy.
    var leastRevision: Int64 = 0
    /// The file that the values were written to.
    var identity: FileIdentity?
    /// Whether the log has nothing that the rows have not, and nobody has the store open.
    var isClosed = false
    /// The log of the store that the database was copied from, until its files are gone.
    var former: Epoch?

    init(epoch: Epoch) { (self.epoch, log) = (epoch, epoch) }

    private enum Name: String, CaseIterable {
        case format = "format version"
        case epoch, log, life
        case segment = "settled segment"
        case offset = "settled byte"
        case revision = "settled revision"
        case floor
        case rowCount = "rows"
        case leastRevision = "least revision"
        case inode
        case birthTime = "birth time"
        case isClosed = "closed"
        case former = "former log"
    }

    /// Takes the facts out of the texts of `meta`.
    init(taking texts: inout [String: String], of path: String) throws(StateError) {
        var taken: [Name: String] = [:]
        for name in Name.allCases { taken[name] = texts.removeValue(forKey: name.rawValue) }
        func number(_ name: Name) throws(StateError) -> Int64 {
            guard let number = taken[name].flatMap({ Int64($0) }), number >= 0 else {
                throw .damaged(path, "'\(name.rawValue)' is missing in meta or not valid")
            }
            return number
        }
        guard try number(.format) == Int64(SettledDatabase.formatVersion) else {
            throw .damaged(path, "meta has another format than the header")
        }
        guard let epoch = taken[.epoch].flatMap({ Epoch($0) }) else {
            throw .damaged(path, "'epoch' is missing in meta or not valid")
        }
        self.epoch = epoch
        guard let log = taken[.log].flatMap({ Epoch($0) }) else {
            throw .damaged(path, "'log' is missing in meta or not valid")
        }
        self.log = log
        life = LogLife(number: UInt64(try number(.life)))
        place = LogPlace(
            segment: UInt64(try number(.segment)),
            offset: Int(try number(.offset))
        )
        revision = try number(.revision)
        floor = try number(.floor)
        rowCount = try number(.rowCount)
        leastRevision = try number(.leastRevision)
        identity = FileIdentity(inode: try number(.inode), birthTime: try number(.birthTime))
        isClosed = try number(.isClosed) != 0
        former = taken[.former].flatMap { Epoch($0) }
    }

    fileprivate var texts: [(String, String?)] {
        let texts: [Name: String?] = [
            .format: "\(SettledDatabase.formatVersion)", .epoch: epoch.description,
            .log: log.description, .life: "\(life.number)", .segment: "\(place.segment)",
            .offset: "\(place.offset)",
            .revision: "\(revision)", .floor: "\(floor)", .rowCount: "\(rowCount)",
            .leastRevision: "\(leastRevision)", .inode: identity.map { "\($0.inode)" } ?? "0",
            .birthTime: identity.map { "\($0.birthTime)" } ?? "0",
            .isClosed: isClosed ? "1" : "0", .former: former.map(\.description),
        ]
        return texts.map { ($0.key.rawValue, $0.value) }
    }
}

extension MetaWriter {
    func write(_ facts: SettledFacts) throws(SQLiteFailure) {
        for (name, text) in facts.texts { try write(name, text) }
    }
}

/// Writes rows of `newest`, in the open transaction.
private final class NewestWriter {
    private let connection: SQLiteConnection
    private let insert: SQLiteStatement
    private let update: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        self.connection = connection
        insert = try connection.prepare(
            "INSERT OR IGNORE INTO newest VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        )
        update = try connection.prepare(
            """
            UPDATE newest SET value=?2, revision=?3, ordinal=?4, created=?5, owner=?6, version=?7,
                time=?8, expires=?9, cause=?10, checksum=?11 WHERE key=?1
            """
        )
    }

    /// - Returns: Whether the key had no row.
    func write(_ change: NewestChange) throws(SQLiteFailure) -> Bool {
        let row = change.row
        // What supersedes a change has a row already, nearly always: one search instead of two.
        if change.supersedes, try run(update, row) { return false }
        if try run(insert, row) { return true }
        _ = try run(update, row)
        return false
    }

    private func run(
        _ statement: SQLiteStatement,
        _ row: borrowing SettledRow
    ) throws(SQLiteFailure) -> Bool {
        statement.bind(row)
        try statement.run()
        return connection.changeCount > 0
    }
}

extension SQLiteStatement {
    /// Binds the columns of a row, whose bytes are borrowed until the statement has run.
    func bind(_ row: borrowing SettledRow) {
        let change = row.change
        let parameters = Parameters(statement: handle, first: 0)
        parameters.bind(1, text: change.key)
        parameters.bind(2, blob: change.value)
        parameters.bind(3, change.revision)
        parameters.bind(4, Int64(change.ordinal))
        parameters.bind(5, change.created)
        parameters.bind(6, Int64(change.owner))
        parameters.bind(7, change.version)
        parameters.bind(8, change.time)
        if let expires = change.expires {
            parameters.bind(9, expires)
        } else {
            parameters.bindNull(9)
        }
        parameters.bind(10, text: change.cause)
        parameters.bind(11, Int64(row.checksum))
    }
}
