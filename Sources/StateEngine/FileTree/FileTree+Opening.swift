import CLinux
import StatePlatform

/// The journal's directory, before and after it is used.
extension FileTree {
    /// Removes the journal, and makes that durable.
    func removeJournal() throws(FileFailure) {
        try remove(FileJournal.path)
        try directory(FileJournal.directory).sync()
    }

    /// Creates the directory for the journal, and makes both directories durable.
    ///
    /// - Throws: ``FileFailure``, also if others created the journal's directory or may write to
    ///   it: they could make this process replay steps.
    func prepare() throws(FileFailure) {
        let name = FileJournal.directory
        let code = FilePath.withCString(name.bytes) { mkdirat(root.descriptor, $0, 0o700) }
        guard code == 0 || errno == EEXIST else { throw FileFailure("mkdirat", name) }
        let journal = try directory(name)
        try FileTree.check(journal)
        if code == 0 {
            // Nothing in it belongs under version control.
            let list = name.appending(Array(".gitignore".utf8))
            try? "*\n".utf8.withContiguousStorageIfAvailable {
                _ = try write(Bytes($0), to: list, like: nil, mode: 0o600)
            }
            try journal.sync()
            try root.sync()
        }
        // If it may not be opened, it belongs to somebody else, and so is not new.
        let parent = openat(root.descriptor, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { return }
        defer { StatePlatform.close(parent) }
        guard clinux_sync(parent) == 0 else { throw FileFailure("fsync", .root) }
    }
}
