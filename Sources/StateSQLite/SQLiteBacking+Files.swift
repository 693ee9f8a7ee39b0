import StateEngine

/// What is noted of keys that live in files beside the history.
extension SQLiteBacking: FileMarkBacking {
    package func takeFileMark() -> String? {
        defer { foundFileMark = nil }
        return foundFileMark
    }

    package func fileContainers() throws -> String? {
        try inTurn {
            guard let open else { throw notOpen() }
            return try StoreMetadata(open.connection).value(of: .fileContainers)
        }
    }

    package func setFileContainers(_ text: String?) throws {
        try note { (writer) throws(SQLiteFailure) in
            try writer.write(StoreMetadata.Name.fileContainers.rawValue, text)
        }
    }

    package func removeFileMark() throws {
        try note { (writer) throws(SQLiteFailure) in try writer.write(.remove) }
    }

    /// Writes to `meta` in a transaction of its own.
    private func note(_ body: (NoteWriter) throws(SQLiteFailure) -> Void) throws {
        try inTurn {
            guard let open else { throw notOpen() }
            do {
                try open.begin.run()
                try body(open.noteWriter)
            } catch {
                try open.abandon(error)
            }
            try open.finishCommit()
            open.noteEnd()
        }
    }
}
