import StateEngine

/// Facts about keys that are stored in files beside the history.
extension SQLiteBacking: PendingFileListBacking {
    package func takePendingFileList() -> String? {
        defer { found.pendingFileList = nil }
        return found.pendingFileList
    }

    package func fileContainers() throws -> String? {
        try inTurn {
            guard let open else { throw notOpen() }
            return try StoreMetadata(open.connection).value(of: .fileContainers)
        }
    }

    package func setFileContainers(_ text: String?) throws {
        try write { (writer) throws(SQLiteFailure) in
            try writer.write(.fileContainers, text)
        }
    }

    package func setPendingFileList(_ text: String?) throws {
        try write { (writer) throws(SQLiteFailure) in try writer.write(.pendingFiles, text) }
    }

    /// Writes to `meta` in its own transaction.
    private func write(_ body: (MetadataWriter) throws(SQLiteFailure) -> Void) throws {
        try inTurn {
            guard let open else { throw notOpen() }
            try open.write(body)
        }
    }
}
