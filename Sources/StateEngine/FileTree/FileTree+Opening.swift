import Glibc

/// The journal's directory, before and after it is used.
extension FileTree {
    /// Removes the journal, and makes that durable.
    func removeJournal() throws(FileFailure) {
        try remove(FileJournal.path)
        try directory(FileJournal.directory).sync()
    }

    /// Makes the directory for the journal, and both directories durable.
    ///
    /// - Throws: ``FileFailure``, also if the journal's directory is one that others made or may write: they could have steps replayed.
    func prepare() throws(FileFailure) {
        let name = FileJournal.directory
        let code = FilePath.withCString(name.bytes) { mkdirat(root.descriptor, $0, 0o700) }
        guard code == 0 || errno == EEXIST else { throw FileFailure("mkdirat", name) }
        let journal = try directory(name)
        try FileTree.check(journal)
        if code == 0 {
            try journal.sync()
            try root.sync()
        }
        // If it may not be opened, it is not ours, and so not new.
        let parent = openat(root.descriptor, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { return }
        defer { Glibc.close(parent) }
        guard fsync(parent) == 0 else { throw FileFailure("fsync", .root) }
    }
}
