import CLinux
import CSQLite
import StateEngine

/// The rows of `meta`: text, each with a CRC-32C of `name`, a zero byte and `value`.
///
/// Apart from the names here, there is metadata of handlers and others (``MetadataEntry``).
package struct StoreMetadata {
    /// The names.
    package enum Name: String, CaseIterable {
        case format = "format version"
        case epoch
        /// Up to this revision, history may have been removed.
        case compacted = "compacted revision"
        /// What rules have removed beyond that (``HistoryFloors``); absent if nothing.
        case historyFloors = "history floors"
        /// Written by earlier versions, and ignored.
        case swept = "swept revision"
        /// A lower bound of the last revision, if no row has it: after a copy, or a commit of
        /// metadata only.
        case leastRevision = "least revision"
        case inode
        case birthTime = "birth time"
        /// A new one after each start and each clean stop, as in the ``StoreStamp``; absent in an
        /// old store.
        case generation
        /// The number of rows of `history` at a clean stop; removed once the owner has written.
        case rowCount = "rows at a clean stop"
        /// The files that the last commit may have failed to reach (``PendingFileListBacking``);
        /// absent if there are none.
        case pendingFiles = "files pending"
        /// The directories with files of keys.
        case fileContainers = "files containers"

        /// The number in a value; nil if it is not one that this name can have.
        package func number(_ text: String) -> Int64? {
            let range =
                switch self {
                case .compacted, .swept, .leastRevision, .rowCount:
                    0...RevisionReservation.largestRevision
                default: Int64.min...Int64.max
                }
            return Int64(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    let connection: SQLiteConnection

    package init(_ connection: SQLiteConnection) { self.connection = connection }

    /// The value of `name`; nil if there is none.
    ///
    /// - Throws: ``StateError/Code/corrupt``, naming the row; or SQLite's error.
    func value(of name: Name) throws -> String? {
        let select = try connection.prepare(
            "SELECT value, checksum FROM meta WHERE name='\(name.rawValue)'"
        )
        guard try select.step() else { return nil }
        let value = select.text(at: 0)
        guard select.number(at: 1) == Int64(StoreMetadata.checksum(name, value)) else {
            throw StateError.damaged(
                connection.path,
                "'\(name.rawValue)' in meta does not match its checksum"
            )
        }
        return value
    }

    /// The number of `name`; nil if there is none.
    func number(of name: Name) throws -> Int64? {
        guard let text = try value(of: name) else { return nil }
        guard let number = name.number(text) else { throw missing(name) }
        return number
    }

    /// The generation; nil if the store has none yet.
    func generation() throws -> UInt64? {
        guard let text = try value(of: .generation) else { return nil }
        guard let generation = UInt64(text) else { throw missing(.generation) }
        return generation
    }

    /// The number of a name that is always present.
    func required(_ name: Name) throws -> Int64 {
        guard let number = try number(of: name) else { throw missing(name) }
        return number
    }

    /// What rules have removed beyond the compacted revision.
    func floors() throws -> HistoryFloors {
        guard let text = try value(of: .historyFloors) else { return HistoryFloors() }
        guard let floors = HistoryFloors(text) else { throw missing(.historyFloors) }
        return floors
    }

    /// The store's revision, if its newest row has revision `revision`.
    ///
    /// After a copy, a commit of metadata only, or a compaction, no row has the store's revision.
    func lastRevision(ofRows revision: Int64) throws -> Int64 {
        max(revision, try required(.leastRevision), try required(.compacted))
    }

    /// The identity of the file that the store was in when it was last open.
    func identity() throws -> FileIdentity {
        FileIdentity(inode: try required(.inode), birthTime: try required(.birthTime))
    }

    /// The epoch of the store.
    func epoch() throws -> Epoch {
        guard let text = try value(of: .epoch), let epoch = Epoch(text) else {
            throw missing(.epoch)
        }
        return epoch
    }

    /// Checks what nothing else reads: the format, and that every row has a known name.
    ///
    /// Otherwise a row with a damaged name would count as missing.
    ///
    /// - Throws: ``StateError/Code/corrupt``, or SQLite's error.
    func check() throws {
        let format = try required(.format)
        guard format == HistorySchema.formatVersion else {
            throw StateError.damaged(connection.path, "meta has format \(format)")
        }
        let names = Name.allCases.map { "'\($0.rawValue)'" }.joined(separator: ",")
        let unknown = try connection.number(
            """
            SELECT count(*) FROM meta
            WHERE name IS NULL OR name NOT IN (\(names)) AND name NOT GLOB '\(StoreMetadata.metadataPrefix)*'
            """
        )
        guard unknown == 0 else {
            throw StateError.damaged(connection.path, "meta has a row with an unknown name")
        }
    }

    private func missing(_ name: Name) -> StateError {
        .damaged(connection.path, "'\(name.rawValue)' is missing in meta or not valid")
    }

    /// Sets a value, in the open transaction.
    package func set(_ name: Name, _ value: String) throws(SQLiteFailure) {
        // Names, numbers and hexadecimal digits need no quoting.
        try connection.execute(
            """
            INSERT OR REPLACE INTO meta
            VALUES('\(name.rawValue)', '\(value)', \(StoreMetadata.checksum(name, value)))
            """
        )
    }

    /// Removes a value, in the open transaction.
    func remove(_ name: Name) throws(SQLiteFailure) {
        try connection.execute("DELETE FROM meta WHERE name='\(name.rawValue)'")
    }

    /// Sets the identity of the store's file.
    package func set(_ identity: FileIdentity) throws(SQLiteFailure) {
        try set(.inode, "\(identity.inode)")
        try set(.birthTime, "\(identity.birthTime)")
    }

    package static func checksum(_ name: Name, _ value: String) -> UInt32 {
        checksum(name.rawValue, value)
    }

    /// The checksum of a row of any name.
    package static func checksum(_ name: String, _ value: String) -> UInt32 {
        Array("\(name)\0\(value)".utf8)
            .withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) }
    }
}
