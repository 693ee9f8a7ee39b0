import Glibc

/// What is asked of a directory before it is used.
extension FileTree {
    /// Checks that nobody but root and this process's user may write the directory itself, unless it `isShared`.
    func checkAccess(_ shown: String, isShared: Bool) throws {
        guard let status = try status(.root) else {
            throw StateError(.storage, "\(shown) is gone")
        }
        let isOurs = status.uid == geteuid() || status.uid == 0
        if !isShared, !isOurs || status.mode & 0o022 != 0 {
            throw StateError(
                .storage,
                "others may write \(shown) (uid \(status.uid), mode \(String(status.mode & 0o7777, radix: 8)))"
            )
        }
    }

    /// Makes the directory for the lock and the journal, and both directories durable.
    func prepare() throws(FileFailure) {
        for path in try makeDirectories(FileJournal.directory) { try directory(path).sync() }
        // Where it may not be opened, it is not ours, and so not new.
        let parent = open("\(location)/..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { return }
        defer { Glibc.close(parent) }
        guard fsync(parent) == 0 else { throw FileFailure("fsync", .root) }
    }

    /// Takes the lock that makes this process the owner of the directory.
    func lock(for shown: String) throws(StateError) -> OwnerLock {
        let directory = String(decoding: FileJournal.directory.bytes, as: UTF8.self)
        return try OwnerLock(path: "\(location)/\(directory)/lock", for: shown)
    }
}
