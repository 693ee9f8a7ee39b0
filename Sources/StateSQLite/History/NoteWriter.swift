import CSQLite
import StateEngine

/// Writes the notes of commits to `meta`, in the transaction that is open.
final class NoteWriter {
    private let upsert: SQLiteStatement
    private let remove: SQLiteStatement
    private let setLeast: SQLiteStatement

    init(_ connection: SQLiteConnection) throws(SQLiteFailure) {
        upsert = try connection.prepare("INSERT OR REPLACE INTO meta VALUES(?, ?, ?)")
        remove = try connection.prepare("DELETE FROM meta WHERE name=?")
        setLeast = try connection.prepare(
            "INSERT OR REPLACE INTO meta VALUES('\(StoreMetadata.Name.leastRevision.rawValue)', ?, ?)"
        )
    }

    /// Writes the last note of each name, and the revision that no row of the history has.
    ///
    /// - Parameter notes: In order of revision; at least one.
    /// - Throws: What SQLite answered; the transaction is to be rolled back.
    func write(_ notes: [Note]) throws(SQLiteFailure) {
        var last: [String: Note] = [:]
        for note in notes { last[note.name] = note }
        for note in last.values { try write(note.name, note.text) }
        guard let revision = notes.last.map({ String($0.revision) }) else { return }
        setLeast.bind(1, text: revision)
        setLeast.bind(
            2,
            Int64(StoreMetadata.checksum(StoreMetadata.Name.leastRevision.rawValue, revision))
        )
        try setLeast.run()
    }
}

extension NoteWriter {
    /// Writes a row of `meta`, or removes it where `text` is nil.
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

    /// Writes the mark of the files that a commit may not reach.
    func write(_ mark: FileMarkChange) throws(SQLiteFailure) {
        switch mark {
        case .keep: break
        case .set(let text): try write(StoreMetadata.Name.pendingFiles.rawValue, text)
        case .remove: try write(StoreMetadata.Name.pendingFiles.rawValue, nil)
        }
    }
}

extension SQLiteBacking: NoteBacking {
    package func takeNotes() -> [String: String] {
        defer { foundNotes = [:] }
        return foundNotes
    }
}

extension StoreMetadata {
    /// How the name of a note begins; none of the store's own does.
    package static let notePrefix = "handler:"

    /// The notes, by name.
    ///
    /// - Throws: ``StateError/Code/corrupt``, naming the row; or what SQLite answered.
    func notes() throws -> [String: String] {
        let select = try connection.prepare(
            "SELECT name, value, checksum FROM meta WHERE name GLOB '\(StoreMetadata.notePrefix)*'"
        )
        var notes: [String: String] = [:]
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
            notes[name] = text
        }
        return notes
    }

    /// Writes notes as they were, in the transaction that is open.
    package func set(notes: [String: String]) throws(SQLiteFailure) {
        let insert = try connection.prepare("INSERT OR REPLACE INTO meta VALUES(?, ?, ?)")
        for (name, text) in notes {
            insert.bind(1, text: name)
            insert.bind(2, text: text)
            insert.bind(3, Int64(StoreMetadata.checksum(name, text)))
            try insert.run()
        }
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
