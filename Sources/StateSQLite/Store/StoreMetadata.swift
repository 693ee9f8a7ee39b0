import CLinux
import CSQLite
import StateEngine

/// The rows of `meta`: text, each with a CRC-32C of `name`, a zero byte and `value`.
///
/// Beside those that are named here there are notes (``MetadataEntry``).
package struct StoreMetadata {
    /// The names.
    package enum Name: String, CaseIterable {
        case format = "format version"
        case epoch
        /// Up to here, history may be gone.
        case compacted = "compacted revision"
        /// Up to here everything superseded is gone; absent where that is the compacted revision.
        case swept = "swept revision"
        /// What the last revision is not below, though no row says so: after a copy, or a commit that only noted something.
        case leastRevision = "least revision"
        case inode
        case birthTime = "birth time"
        /// Another one after each start and each clean stop, as in the ``StoreStamp``; absent in a store of before.
        case generation
        /// The rows of `history` at a clean stop; absent while there is an owner that wrote.
        case rowCount = "rows at a clean stop"
        /// The files that the last commit may not have reached (``PendingFileListBacking``); absent where there are none.
        case pendingFiles = "files pending"
        /// The directories that hold files of keys.
        case fileContainers = "files containers"

        /// The number that a value says; nil where it says none that this name can have.
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

    /// The value of `name`; nil where there is none.
    ///
    /// - Throws: ``StateError/Code/corrupt``, naming the row; or what SQLite answered.
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

    /// The number that `name` has; nil where there is none.
    func number(of name: Name) throws -> Int64? {
        guard let text = try value(of: name) else { return nil }
        guard let number = name.number(text) else { throw missing(name) }
        return number
    }

    /// The generation; nil where the store has none yet.
    func generation() throws -> UInt64? {
        guard let text = try value(of: .generation) else { return nil }
        guard let generation = UInt64(text) else { throw missing(.generation) }
        return generation
    }

    /// What `name` always has.
    func required(_ name: Name) throws -> Int64 {
        guard let number = try number(of: name) else { throw missing(name) }
        return number
    }

    /// The revision that the store is at, whose newest row has revision `revision`: a copy, a commit that only noted something and
    /// compaction leave one that no row has.
    func lastRevision(ofRows revision: Int64) throws -> Int64 {
        max(revision, try required(.leastRevision), try required(.compacted))
    }

    /// Which file the store was in when it was last open.
    func identity() throws -> FileIdentity {
        FileIdentity(inode: try required(.inode), birthTime: try required(.birthTime))
    }

    /// The identity of the store.
    func epoch() throws -> Epoch {
        guard let text = try value(of: .epoch), let epoch = Epoch(text) else {
            throw missing(.epoch)
        }
        return epoch
    }

    /// Checks what nothing else asks for: the format, and that every row has a name that is known.
    ///
    /// A row whose name is damaged would else be taken for one that is not there.
    ///
    /// - Throws: ``StateError/Code/corrupt``, or what SQLite answered.
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
            throw StateError.damaged(connection.path, "meta has a row of no known name")
        }
    }

    private func missing(_ name: Name) -> StateError {
        .damaged(connection.path, "'\(name.rawValue)' is missing in meta, or is not what it can be")
    }

    /// Sets a value, in the transaction that is open.
    package func set(_ name: Name, _ value: String) throws(SQLiteFailure) {
        // Names, numbers and hexadecimal digits: nothing to quote.
        try connection.execute(
            """
            INSERT OR REPLACE INTO meta
            VALUES('\(name.rawValue)', '\(value)', \(StoreMetadata.checksum(name, value)))
            """
        )
    }

    /// Removes a value, in the transaction that is open.
    func remove(_ name: Name) throws(SQLiteFailure) {
        try connection.execute("DELETE FROM meta WHERE name='\(name.rawValue)'")
    }

    /// Sets which file the store is in.
    package func set(_ identity: FileIdentity) throws(SQLiteFailure) {
        try set(.inode, "\(identity.inode)")
        try set(.birthTime, "\(identity.birthTime)")
    }

    package static func checksum(_ name: Name, _ value: String) -> UInt32 {
        checksum(name.rawValue, value)
    }

    /// That of a row of any name.
    package static func checksum(_ name: String, _ value: String) -> UInt32 {
        Array("\(name)\0\(value)".utf8)
            .withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) }
    }
}
