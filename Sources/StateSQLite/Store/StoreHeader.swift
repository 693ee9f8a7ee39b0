package import StateEngine

/// What the header of the database says, and the numbers in it that identify the program and the format.
package enum StoreHeader {
    /// "Stat" in the header. https://www.sqlite.org/fileformat2.html#application_id
    static let applicationID: Int32 = 0x5374_6174

    /// The size of a page in bytes.
    package static let pageByteCount = 4_096

    /// Checks by the header alone that the file is a store, in a format that this program reads.
    ///
    /// SQLite has not read it yet: opening another program's database could roll back its journal.
    ///
    /// - Throws: ``StateError/Code/corrupt``; ``StateError/Code/newerFormat``, or ``StateError/Code/storage`` for
    /// an older one.
    static func checkHeader(
        of connection: SQLiteConnection
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
        try checkFormat(Int64(header.number(at: 60, bytes: 4)), of: path)
    }

    /// Refuses what somebody else has added, of the types that the glob means.
    ///
    /// SQLite's own tables, such as those of ANALYZE, begin with `sqlite_`.
    static func checkAdditions(_ connection: SQLiteConnection, of types: String) throws {
        let added = try connection.text(
            """
            SELECT type || ' ' || quote(name) FROM sqlite_schema WHERE type GLOB '\(types)'
            AND name NOT IN('newest', 'deletes', 'meta', 'entries') AND name NOT GLOB 'sqlite_*' LIMIT 1
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

    private static func checkFormat(_ stored: Int64, of path: String) throws(StateError) {
        let format = Int32(truncatingIfNeeded: stored)
        guard format <= SettledDatabase.formatVersion else {
            throw StateError(
                .newerFormat,
                "\(path) has format \(format); this program reads formats up to "
                    + "\(SettledDatabase.formatVersion)"
            )
        }
        guard format == SettledDatabase.formatVersion else {
            throw StateError(
                .storage,
                "\(path) has format \(format), which this program does not read any more: make a "
                    + "backup with the program that made it (statectl backup), and restore that with "
                    + "stated --restore"
            )
        }
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
