package import StateEngine
import StatePlatform

/// The tables of a store, and the two numbers in the file's header that identify the program and
/// the format.
///
/// ```
/// history   one row for each change, in order of revision: writing only appends, at one place in
///           one B-tree. `number` rises with (revision, ordinal), so a binary search finds a row by
///           these. It is the B-tree's key instead of them because SQLite appends to a table with
///           such a key without a search, and fills pages that it would otherwise split: 0.87 µs
///           instead of 1.19 for each row at 800 rows a commit, and 2.8 instead of 5.6 pages for a
///           commit of 30 rows. There is no index by key: it would cost exactly what appending
///           saves (46,000 instead of 250,000 rows a second)
/// meta      facts about the store
/// entries   the current state, for people: sqlite3 stated.db 'SELECT * FROM entries'
/// ```
///
/// `key` and `cause` are TEXT, because they are always UTF-8. `value` is always a BLOB: each value
/// would have to be checked for being text, and the column's type would then mean nothing;
/// `entries` shows it as text. NULL stands for what is absent: `value` of a delete, `expires`,
/// `cause`, and `previous_…` of a key's first change.
package enum HistorySchema {
    /// "Stat" in the header. https://www.sqlite.org/fileformat2.html#application_id
    static let applicationID: Int32 = 0x5374_6174
    package static let formatVersion: Int32 = 1

    static let history = """
        CREATE TABLE history(
            number INTEGER PRIMARY KEY, revision INTEGER, ordinal INTEGER, key TEXT, value BLOB,
            created INTEGER, owner INTEGER, version INTEGER, time INTEGER, expires INTEGER,
            cause TEXT, previous_revision INTEGER, previous_ordinal INTEGER, checksum INTEGER)
        """
    /// The columns of a change, without the number.
    static let columns = """
        revision, ordinal, key, value, created, owner, version, time, expires, cause,
        previous_revision, previous_ordinal, checksum
        """
    package static let columnCount = 13
    static let meta = """
        CREATE TABLE meta(name TEXT PRIMARY KEY, value, checksum INTEGER) WITHOUT ROWID
        """
    static let entries = """
        CREATE VIEW entries AS
        SELECT key, CAST(bytes AS TEXT) AS value, revision,
            strftime('%Y-%m-%d %H:%M:%f', time / 1000.0, 'unixepoch', 'localtime') AS time, cause AS by
        FROM (SELECT key, value AS bytes, revision, max(number), time, cause FROM history GROUP BY key)
        WHERE bytes IS NOT NULL
        """

    /// Appends rows.
    ///
    /// SQLite chooses the number, one above the last: only then does it append without a search.
    static func insert(rowCount: Int) -> String {
        let row = "(" + Array(repeating: "?", count: columnCount).joined(separator: ",") + ")"
        let rows = Array(repeating: row, count: rowCount).joined(separator: ",")
        return "INSERT INTO history(\(columns)) VALUES\(rows)"
    }
    /// In the order of the only B-tree, that of the numbers; the reader checks that it is the order
    /// of the revisions.
    static let receiveAll = "SELECT receive(number, \(columns)) FROM history"
    /// The same from a number on.
    static func receive(after number: Int64) -> String {
        "SELECT receive(number, \(columns)) FROM history WHERE number > \(number)"
    }

    /// The size of a page in bytes.
    ///
    /// With 4 KiB, a SET of 50 clients writes 800 to 910 bytes to the disk, with 8 KiB 1,360 to
    /// 1,510; the processor time is the same within 3 %. Stores that were made with 8 KiB keep them.
    package static let pageByteCount = 4_096
    /// A store has three tables and so three pages; earlier ones had pages of this size.
    static let leastByteCount = 8_192

    /// Creates an empty store, completely or not at all.
    ///
    /// It is created under another name and then renamed, so that a crash leaves no incomplete
    /// store. The file itself contains the generation, not only the log, so that a copy of the file
    /// alone is recognised as a copy.
    package static func create(
        at location: StoreLocation,
        generation: UInt64? = nil
    ) throws(StateError) {
        let draft = location.database + ".new"
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(draft + suffix) }
        let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StateError(.storage, "\(draft) cannot be created: \(lastSystemError())")
        }
        close(descriptor)
        do {
            try fill(draft, generation)
        } catch {
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

    private static func fill(_ path: String, _ generation: UInt64?) throws(SQLiteFailure) {
        let connection = try SQLiteConnection(path: path)
        try connection.set(
            "page_size=\(pageByteCount)",
            "auto_vacuum=NONE",
            "encoding='UTF-8'",
            // A draft needs no journal, and one sync at the end: twelve took 2 ms of a start.
            "journal_mode=MEMORY",
            "synchronous=OFF"
        )
        try connection.transaction { () throws(SQLiteFailure) in
            try connection.execute("PRAGMA application_id=\(applicationID)")
            try connection.execute("PRAGMA user_version=\(formatVersion)")
            // Order matters: if a view comes last, quick_check of SQLite 3.40 takes its root, 0,
            // for a request to check one table only, and skips the free pages:
            // https://www.sqlite.org/src/file/src/btree.c ("bPartial"). A commit would then
            // overwrite pages that are in use.
            for definition in [entries, history, meta] { try connection.execute(definition) }
            let metadata = StoreMetadata(connection)
            try metadata.set(.format, "\(formatVersion)")
            try metadata.set(.epoch, Epoch.random().description)
            try metadata.set(.compacted, "0")
            try metadata.set(.leastRevision, "0")
            if let identity = FileIdentity(path: path) { try metadata.set(identity) }
            if let generation { try metadata.set(.generation, "\(generation)") }
        }
        // Last, so that the file contains all of the above and can be read without a log.
        _ = try connection.text("PRAGMA journal_mode=WAL")
        try connection.sync()
        connection.checkpointsOnClose()
    }

    /// Checks by the header alone that the file is a store, in a format that this program reads.
    ///
    /// SQLite has not read it yet: opening another program's database could roll back its journal.
    ///
    /// - Throws: ``StateError/Code/corrupt``; ``StateError/Code/newerFormat`` above `format`.
    static func checkHeader(
        of connection: SQLiteConnection,
        format: Int32 = formatVersion
    ) throws(StateError) {
        let path = connection.path
        // A flipped bit looks the same as another program's database.
        let advice = StateError.salvageAdvice(path)
        guard let header = connection.readHeader(byteCount: 100),
            header.starts(with: Array("SQLite format 3\0".utf8))
        else {
            throw StateError(.corrupt, "\(path) is not an SQLite database\(advice)")
        }
        let application = Int32(truncatingIfNeeded: header.number(at: 68, bytes: 4))
        guard application == applicationID else {
            throw StateError(
                .corrupt,
                "\(path) is a database of another program (application id \(application)"
                    + ", expected \(applicationID))\(advice)"
            )
        }
        // Above 2, SQLite treats the file as read-only, and reports that only at the first write.
        // https://www.sqlite.org/fileformat2.html#file_format_version_numbers
        guard max(header[18], header[19]) <= 2 else {
            throw StateError.damaged(
                path,
                "its header says write version \(header[18]), read version \(header[19])"
            )
        }
        try checkFormat(Int64(header.number(at: 60, bytes: 4)), upTo: format, of: path)
    }

    /// Checks what SQLite reads, with the log applied: format and tables.
    static func check(_ connection: SQLiteConnection) throws {
        let path = connection.path
        let application = try connection.number("PRAGMA application_id")
        let format = try connection.number("PRAGMA user_version")
        guard application == Int64(applicationID) else {
            throw StateError.damaged(path, "its application id is \(application)")
        }
        try checkFormat(format, upTo: formatVersion, of: path)
        for (name, expected) in [("history", history), ("meta", meta), ("entries", entries)] {
            let found = try connection.text("SELECT sql FROM sqlite_schema WHERE name='\(name)'")
            guard found == expected else {
                throw StateError.damaged(
                    path,
                    found.isEmpty ? "\(name) is missing" : "the definition of \(name) is altered"
                )
            }
        }
        // A trigger changes what is stored; other additions only take room.
        try checkAdditions(connection, of: "trigger")
    }

    /// Refuses what somebody else has added, of the types that the glob means.
    ///
    /// SQLite's own tables, such as those of ANALYZE, begin with `sqlite_`.
    static func checkAdditions(_ connection: SQLiteConnection, of types: String) throws {
        let added = try connection.text(
            """
            SELECT type || ' ' || quote(name) FROM sqlite_schema WHERE type GLOB '\(types)'
            AND name NOT IN('history', 'newest', 'deletes', 'meta', 'entries') AND name NOT GLOB 'sqlite_*' LIMIT 1
            """
        )
        guard added.isEmpty else {
            throw StateError.damaged(
                connection.path,
                "it has the \(StateError.printable(added)), which stated has not made; remove it with "
                    + "DROP in sqlite3"
            )
        }
    }

    private static func checkFormat(
        _ stored: Int64,
        upTo limit: Int32,
        of path: String
    ) throws(StateError) {
        let format = Int32(truncatingIfNeeded: stored)
        guard format > limit else { return }
        throw StateError(
            .newerFormat,
            "\(path) has format \(format); this program reads formats up to \(limit)"
        )
    }
}

extension StoredChange {
    /// Whether these numbers can belong to a change.
    ///
    /// A checksum proves that a row is unaltered, not who wrote it: numbers near the limits of
    /// Int64 would overflow in later arithmetic.
    package var isPossible: Bool {
        let revisions = 0...RevisionReservation.largestRevision
        return revision > 0 && revisions.contains(revision) && revisions.contains(created)
            && revisions.contains(version) && revisions.contains(previousRevision)
            && ordinal >= 0 && previousOrdinal >= 0
            && time.magnitude <= RevisionReservation.largestRevision.magnitude
            && expires ?? 0 >= -RevisionReservation.largestRevision
    }
}
