import StatePlatform
import StateSystem

/// The directory: opened, given up, and back again.
extension FileContainer {
    /// Whether the directory in use is the one at its path; may be called from any thread.
    var isInPlace: Bool { used.withLock { $0.identity }?.stands(at: location) ?? false }

    /// Opens the directory, and begins to watch it; nothing is read yet.
    ///
    /// - Parameters:
    ///   - expectsFiles: Whether it held the files of keys when it was last used. A different
    ///     directory that is empty is refused then: it looks like that if a mount is missing.
    ///   - noted: The directory that was used then, if known.
    ///   - acceptsAnother: Whether it may differ from the one that this container has used before.
    ///   - wake: Called on any thread when there is something to read.
    /// - Throws: ``StateError`` if it cannot be used, or is not the one that this container has
    ///   used before.
    func open(
        expectsFiles: Bool = false,
        noted: DirectoryIdentity? = nil,
        acceptsAnother: Bool = false,
        _ wake: @escaping @Sendable () -> Void
    ) throws {
        let tree = try FileTree(
            trusted: location,
            isShared: isShared,
            owners: temporaryOwners,
            form: form
        )
        do {
            let found = try DirectoryIdentity(tree.root)
            let (last, refused) = used.withLock { ($0.identity, $0.refused) }
            if let last, !acceptsAnother {
                guard found.isSame(as: last) else {
                    throw refused.map { found.isSame(as: $0) } ?? false ? empty() : exchanged()
                }
            } else if expectsFiles, try !tree.isOwn(found, noted ?? last) {
                used.withLock { $0.refused = found }
                throw empty()
            }
            let lock = try DirectoryLock(tree.root, for: location)
            if lock.isHeldByUnknown { problems.noteUnknownOwner() }
            let files = try FileDirectory(
                tree,
                locks: [lock],
                obstacles: problems.obstacles,
                limits: limits,
                edits: .after,
                directoryLimit: isShared
                    ? FileWatcher.sharedDirectoryLimit : FileWatcher.directoryLimit,
                keyOf: keys.key(of:),
                report: problems.skip
            )
            files.watcher.start()
            files.watcher.setWake(wake)
            self.files = files
            used.withLock { ($0.watcher, $0.identity) = (files.watcher, found) }
        } catch let failure as FileFailure {
            throw FileContainer.unusable(location, failure)
        }
    }

    /// Another directory is at the path: whoever put it there might read and write what they should
    /// not.
    private func exchanged() -> StateError {
        StateError(
            .storage,
            "the directory \(location) was replaced by another one; if that is intended, "
                + "reload the configuration (statectl reload)"
        )
    }

    /// The directory is empty, but another one held the files.
    private func empty() -> StateError {
        StateError(
            .storage,
            "the directory \(location) is empty, and is not the one that held the files of keys: "
                + "is a mount missing? To delete all of these keys, create \(location)/.stated, then "
                + "reload the configuration (statectl reload) or start again"
        )
    }

    /// Gives up a directory that is no longer at its path.
    func release() {
        files?.watcher.stop()
        used.withLock { $0.watcher = nil }
        if let files { comparison.keep(files.known) }
        files = nil
    }

    /// Why a directory cannot be used, and what to do if a service may not write to it.
    static func unusable(_ location: String, _ failure: FileFailure) -> StateError {
        var advice = ""
        if failure.code == EROFS || getenv("INVOCATION_ID") != nil {
            advice =
                "; for a service, put ReadWritePaths=\(location) below [Service] in a drop-in of "
                + "stated.service (systemctl edit stated.service)"
        }
        return StateError(
            .storage,
            "the directory \(location) cannot be used: \(failure.sentence)\(advice)"
        )
    }
}

extension FileTree {
    /// Whether a directory is the one that held files of keys: it was recorded as that, or it still
    /// holds some, or somebody confirms it with an entry `.stated`, which is never opened. (Whoever
    /// may make one there may remove the files as well.)
    func isOwn(
        _ found: DirectoryIdentity,
        _ noted: DirectoryIdentity?
    ) throws(FileFailure) -> Bool {
        if let noted, found.isSame(as: noted) { return true }
        if try status(FileJournal.directory) != nil { return true }
        var isEmpty = true
        try forEachName(in: .root) { name, _ in if FileName.isOfKey(name) { isEmpty = false } }
        return !isEmpty
    }
}
