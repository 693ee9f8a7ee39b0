import CSQLite
package import StateEngine

/// Writes rows of `meta`, in the open transaction.
final class MetadataWriter {
    private let upsert: SQLiteStatement
    private let remove: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        upsert = try connection.prepare("INSERT OR REPLACE INTO meta VALUES(?, ?, ?)")
        remove = try connection.prepare("DELETE FROM meta WHERE name=?")
    }

    /// Writes a row, or removes it if `text` is nil.
    ///
    /// - Throws: SQLite's error; the transaction must be rolled back.
    func write(_ name: String, _ text: String?) throws(SQLiteFailure) {
        guard let text else {
            remove.bind(1, text: name)
            return try remove.run()
        }
        upsert.bind(1, text: name)
        upsert.bind(2, text: text)
        upsert.bind(3, Int64(StoreMetadata.checksum(name, text)))
        try upsert.run()
    }

    func write(_ name: StoreMetadata.Name, _ text: String?) throws(SQLiteFailure) {
        try write(name.rawValue, text)
    }

    /// Writes the last metadata of each name, and the last revision, which has no row in the
    /// history.
    ///
    /// `metadata` is in order of revision.
    func write(_ metadata: [MetadataEntry]) throws(SQLiteFailure) {
        guard let revision = metadata.last?.revision else { return }
        var last: [String: MetadataEntry] = [:]
        for entry in metadata { last[entry.name] = entry }
        for entry in last.values { try write(entry.name, entry.text) }
        try write(.leastRevision, "\(revision)")
    }
}

extension StoreMetadata {
    /// The prefix of metadata names; the store's own names never have it.
    package static let metadataPrefix = "handler:"

    /// The metadata, by name.
    ///
    /// - Throws: ``StateError/Code/corrupt``, naming the row; or SQLite's error.
    func metadata() throws -> [String: String] {
        let select = try connection.prepare(
            "SELECT name, value, checksum FROM meta WHERE name GLOB '\(StoreMetadata.metadataPrefix)*'"
        )
        var metadata: [String: String] = [:]
        while try select.step() {
            let (name, text) = (select.text(at: 0), select.text(at: 1))
            guard select.number(at: 2) == Int64(StoreMetadata.checksum(name, text)) else {
                var shown = name
                let quoted = shown.withUTF8 { StateError.quoted(Bytes($0)) }
                throw StateError.damaged(
                    connection.path,
                    "\(quoted) in meta does not match its checksum"
                )
            }
            metadata[name] = text
        }
        return metadata
    }

    /// Writes what rules have removed, in the open transaction.
    package func set(_ floors: HistoryFloors) throws(SQLiteFailure) {
        let text = floors.isEmpty ? nil : floors.text
        try MetadataWriter(connection).write(.historyFloors, text)
    }

    /// Writes metadata unchanged, in the open transaction.
    package func set(metadata: [String: String]) throws(SQLiteFailure) {
        let writer = try MetadataWriter(connection)
        for (name, text) in metadata { try writer.write(name, text) }
    }
}

extension SQLiteStatement {
    /// Binds a parameter, numbered from 1, to a copy of a text.
    fileprivate func bind(_ number: Int32, text: String) {
        var text = text
        text.withUTF8 { bytes in
            // SQLITE_TRANSIENT, a macro that Swift does not see: SQLite copies the bytes.
            let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
            let start = UnsafeRawPointer(bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
            sqlite3_bind_text(handle, number, start, Int32(bytes.count), copies)
        }
    }
}
