import Glibc

/// Which directory stands at a place.
struct DirectoryIdentity: Hashable {
    let device: UInt64
    let inode: UInt64

    /// Nil with errno, where there is none.
    init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return nil }
        (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    }
}

/// The directory: opened, given up, and back again.
extension FileContainer {
    /// Whether the directory that was used last is the one at its place; asked from any thread.
    var isInPlace: Bool { DirectoryIdentity(path: location) == shown.withLock { $0.identity } }

    /// Opens the directory, and begins to watch it; nothing is looked at yet.
    ///
    /// - Parameters:
    ///   - expectsFiles: Whether it held the files of keys when it was last used. One that nobody has used, and that is empty, is
    ///     refused then: what is below a mount that is not there looks so.
    ///   - wake: Called on any thread when there is something to look at.
    /// - Throws: ``StateError``, where it cannot be used.
    func open(expectsFiles: Bool = false, _ wake: @escaping @Sendable () -> Void) throws {
        guard let found = DirectoryIdentity(path: location) else { throw missing() }
        do {
            let tree = try FileTree(location)
            try tree.checkAccess(location, isShared: isShared)
            try checkOwn(tree, found, expectsFiles)
            try tree.prepare()
            lock = try tree.lock(for: location)
            let files = try FileDirectory(
                tree,
                obstacles: obstacles,
                valueByteCount: valueByteCount,
                keyOf: { [unowned self] in key(of: $0) },
                report: { [unowned self] path, error in
                    notice("\(shown(path)) is not followed: \(error.message)")
                }
            )
            files.watcher.start()
            files.watcher.setWake(wake)
            self.files = files
            shown.withLock { ($0.watcher, $0.identity) = (files.watcher, found) }
        } catch let failure as FileFailure {
            throw FileContainer.unusable(location, failure)
        }
    }

    /// Refuses an empty directory that nobody has used, where another is expected.
    private func checkOwn(
        _ tree: FileTree,
        _ found: DirectoryIdentity,
        _ expectsFiles: Bool
    ) throws {
        let last = shown.withLock { $0.identity }
        let isElsewhere = last.map { $0.device != found.device } ?? false
        guard expectsFiles || isElsewhere, try tree.status(FileJournal.directory) == nil else {
            return
        }
        var isEmpty = true
        try tree.forEachName(in: .root) { name, _ in if FileName.isOfKey(name) { isEmpty = false } }
        guard isEmpty else { return }
        throw StateError(
            .storage,
            "the directory \(location) is empty, and not the one that held files of keys (that one had a .stated in it): "
                + "is it not mounted? If all of them are to go, make \(location)/.stated"
        )
    }

    /// The directory cannot be used: its keys keep their values and are not written until it can be.
    func lose(_ reason: String) {
        let error = StateError(.readOnly, reason)
        let isNew = shown.withLock { state in
            defer { state.loss = error }
            return state.loss != error
        }
        if isNew { notice("\(reason); its keys keep their values, and are not written meanwhile") }
    }

    /// Gives up a directory that is not the one at the place any more.
    func release() {
        files?.watcher.stop()
        shown.withLock { $0.watcher = nil }
        // What has come back is not read yet.
        if let files, rescanDeadline == nil { lastKnown = files.known }
        files = nil
        lock = nil
    }

    /// Writes are allowed again.
    func recover() {
        let wasLost = shown.withLock { state in
            defer { state.loss = nil }
            return state.loss != nil
        }
        if wasLost { notice("the directory \(location) is in use again") }
    }

    /// Why a directory cannot be used, and what to do where a service may not write it.
    static func unusable(_ location: String, _ failure: FileFailure) -> StateError {
        var advice = ""
        if failure.code == EROFS || getenv("INVOCATION_ID") != nil {
            advice =
                "; for a service, put ReadWritePaths=\(location) below [Service] in a drop-in of stated.service "
                + "(systemctl edit stated.service)"
        }
        return StateError(
            .storage,
            "the directory \(location) cannot be used: \(failure.sentence)\(advice)"
        )
    }
}
