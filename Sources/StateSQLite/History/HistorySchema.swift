import Glibc
package import StateEngine

/// The tables of a store, and the two numbers in the file's header that say whose it is and of which format.
///
/// ```
/// history   one row a change, in order of revision: writing is appending, at one place of one B-tree. `number` rises with
///           (revision, ordinal), so that a row is found by these with a binary search. It is the key of the B-tree in
///           their place because SQLite appends to a table with such a key without looking for the place, and fills
///           its pages where it would halve others: 0.87 µs instead of 1.19 a row at 800 rows a commit, and 2.8
///           instead of 5.6 pages a commit of 30. No index by key: it costs exactly what appending saves (46,000
///           instead of 250,000 rows a second)
/// meta      what is true of the store as a whole
/// entries   the current state, for people: sqlite3 stated.db 'SELECT * FROM entries'
/// ```
///
/// `key` and `cause` are TEXT, for they are UTF-8 by their rules. `value` is always a BLOB: whether it is text would have
/// to be found out for each, and its type would then say nothing; `entries` shows it as text. NULL stands for what is
/// absent: `value` of a delete, `expires`, `cause`, `previous_…` of a key's first change.
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
    /// Those of a change, without the number.
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
    /// The number is SQLite's to choose, one above the last: only then does it append without looking for the place.
    static func insert(rowCount: Int) -> String {
        let row = "(" + Array(repeating: "?", count: columnCount).joined(separator: ",") + ")"
        let rows = Array(repeating: row, count: rowCount).joined(separator: ",")
        return "INSERT INTO history(\(columns)) VALUES\(rows)"
    }
    /// In the order of the only B-tree there is, that of the numbers; the reader checks that it is that of the revisions.
    static let receiveAll = "SELECT receive(\(columns)) FROM history"
    /// The same with the numbers, from one of them on.
    static func receive(after number: Int64) -> String {
        "SELECT receive(number, \(columns)) FROM history WHERE number > \(number)"
    }

    /// Bytes of a page.
    ///
    /// 8 KiB cost a fifth less processor time than 4 KiB at 50 and 800 rows a commit and a little less where rows are read
    /// back; a write and sync of it alone, as in a commit of one row, took 5 % longer.
    package static let pageByteCount = 8_192

    /// Makes an empty store, which is there whole or not at all.
    ///
    /// It is made beside its place and then moved there, so that a crash leaves no half of one. The file itself has the
    /// generation, not only the log: so that the file alone, of a copy, is known to be one.
    package static func create(
        at location: StoreLocation,
        generation: UInt64? = nil
    ) throws(StateError) {
        let draft = location.database + ".new"
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(draft + suffix) }
        let descriptor = open(draft, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StateError(.storage, "\(draft) cannot be made: \(lastSystemError())")
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
            throw StateError(.storage, "\(location.database) cannot be made: \(lastSystemError())")
        }
    }

    private static func fill(_ path: String, _ generation: UInt64?) throws(SQLiteFailure) {
        let connection = try SQLiteConnection(path: path)
        try connection.set(
            "page_size=\(pageByteCount)",
            "auto_vacuum=NONE",
            "encoding='UTF-8'",
            "synchronous=FULL"
        )
        try connection.transaction { () throws(SQLiteFailure) in
            try connection.execute("PRAGMA application_id=\(applicationID)")
            try connection.execute("PRAGMA user_version=\(formatVersion)")
            // Order matters: where a view comes last, quick_check of SQLite 3.40 takes its root, 0, for the wish to check one
            // table only, and leaves out the free pages: https://www.sqlite.org/src/file/src/btree.c ("bPartial"). A commit
            // would then write over pages that are in use.
            for definition in [entries, history, meta] { try connection.execute(definition) }
            let metadata = StoreMetadata(connection)
            try metadata.set(.format, "\(formatVersion)")
            try metadata.set(.epoch, Epoch.random().description)
            try metadata.set(.compacted, "0")
            try metadata.set(.leastRevision, "0")
            if let identity = FileIdentity(path: path) { try metadata.set(identity) }
            if let generation { try metadata.set(.generation, "\(generation)") }
        }
        // Last, so that the file holds all of the above and no log is needed to read it.
        _ = try connection.text("PRAGMA journal_mode=WAL")
        connection.checkpointsOnClose()
    }

    /// Checks by the header alone that the file is a store of ours, of a format that we read.
    ///
    /// SQLite itself has not looked yet: opening somebody else's database could roll back its journal.
    static func checkHeader(of connection: SQLiteConnection) throws(StateError) {
        let path = connection.path
        // A flipped bit looks the same.
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
                    + ", ours is \(applicationID))\(advice)"
            )
        }
        // Above 2 SQLite takes the file for one that may only be read, and says so at the first write.
        // https://www.sqlite.org/fileformat2.html#file_format_version_numbers
        guard max(header[18], header[19]) <= 2 else {
            throw StateError.damaged(
                path,
                "its header says write version \(header[18]), read version \(header[19])"
            )
        }
        try checkFormat(Int64(header.number(at: 60, bytes: 4)), of: path)
    }

    /// Checks what SQLite reads, after the log was applied: format and tables.
    static func check(_ connection: SQLiteConnection) throws {
        let path = connection.path
        let application = try connection.number("PRAGMA application_id")
        let format = try connection.number("PRAGMA user_version")
        guard application == Int64(applicationID) else {
            throw StateError.damaged(path, "its application id is \(application)")
        }
        try checkFormat(format, of: path)
        for (name, wanted) in [("history", history), ("meta", meta), ("entries", entries)] {
            let found = try connection.text("SELECT sql FROM sqlite_schema WHERE name='\(name)'")
            guard found == wanted else {
                throw StateError.damaged(
                    path,
                    found.isEmpty ? "\(name) is missing" : "the definition of \(name) is altered"
                )
            }
        }
    }

    private static func checkFormat(_ stored: Int64, of path: String) throws(StateError) {
        let format = Int32(truncatingIfNeeded: stored)
        guard format > formatVersion else { return }
        throw StateError(
            .newerFormat,
            "\(path) has format \(format); this program reads formats up to \(formatVersion)"
        )
    }
}
