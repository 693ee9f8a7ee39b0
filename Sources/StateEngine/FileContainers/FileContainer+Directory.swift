import Glibc
import StateSystem

/// The directory: opened, given up, and back again.
extension FileContainer {
    /// Whether the directory that is used is the one at its place; asked from any thread.
    var isInPlace: Bool { used.withLock { $0.identity }?.stands(at: location) ?? false }

    /// Opens the directory, and begins to watch it; nothing is looked at yet.
    ///
    /// - Parameters:
    ///   - expectsFiles: Whether it held the files of keys when it was last used. Another one that is empty is refused then: what is
    ///     below a mount that is not there looks so.
    ///   - noted: The one that it was then, if that is known.
    ///   - acceptsAnother: Whether it may be another than the one that this container has used before.
    ///   - wake: Called on any thread when there is something to look at.
    /// - Throws: ``StateError``, if it cannot be used, or is another than the one that this container has used before.
    func open(
        expectsFiles: Bool = false,
        noted: DirectoryIdentity? = nil,
        acceptsAnother: Bool = false,
        _ wake: @escaping @Sendable () -> Void
    ) throws {
        let tree = try FileTree(trusted: location, isShared: isShared, marks: temporaryMarks)
        do {
            let found = try DirectoryIdentity(tree.root)
            let last = used.withLock { $0.identity }
            if let last, !acceptsAnother {
                guard found.isSame(as: last) else { throw exchanged() }
            } else if expectsFiles, try !tree.isOwn(found, noted ?? last) {
                throw empty()
            }
            let files = try FileDirectory(
                tree,
                lock: DirectoryLock(tree.root, for: location),
                obstacles: problems.obstacles,
                limits: limits,
                edits: .after,
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

    /// Another directory stands at the path: whoever put it there might read and write what he should not.
    private func exchanged() -> StateError {
        StateError(
            .storage,
            "the directory \(location) is another than the one that was opened; if that is meant, have the configuration "
                + "reloaded (statectl reload)"
        )
    }

    /// An empty directory is not the one that held the files.
    private func empty() -> StateError {
        StateError(
            .storage,
            "the directory \(location) is empty, and not the one that held files of keys: is it not mounted? "
                + "If all of them are to go, make \(location)/.stated"
        )
    }

    /// Gives up a directory that is not the one at the place any more.
    func release() {
        files?.watcher.stop()
        used.withLock { $0.watcher = nil }
        if let files { comparison.keep(files.known) }
        files = nil
    }

    /// Why a directory cannot be used, and what to do if a service may not write it.
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

extension FileTree {
    /// Whether a directory is the one that held files of keys: it was noted as that, or holds some still, or somebody says so by an
    /// entry `.stated`, which is never opened. (Whoever may make one there may remove the files as well.)
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
