import StateSystem

/// The files of one rule: a directory, and the keys that live in it.
///
/// Immutable fields, `problems` and `used` may be read from any thread; everything else only by the
/// thread that has the backing: the proof of `@unchecked Sendable`.
final class FileContainer: @unchecked Sendable {
    // Immutable.
    let keys: ContainerKeys
    let isShared: Bool
    let form: FileForm
    let problems: FileProblems

    /// The directory in use.
    struct Used {
        var watcher: FileWatcher?
        /// The identity of the directory that is, or was last, in use.
        var identity: DirectoryIdentity?
        /// The empty directory in its place that a reload has refused.
        var refused: DirectoryIdentity?
    }

    let used = StateLock(Used())

    /// An edit that is a transaction on its way to storage.
    struct Adopted {
        var revision: Int64
        /// Nil if the file is gone.
        var value: [UInt8]?
    }

    /// A key whose change is on stable storage, but whose file is not.
    struct Unpublished {
        /// What the file held before.
        var old: ValueDigest?
        var reason: String
    }

    // Only for the thread that has the backing.
    var limits: Limits
    /// The stores whose temporary files these are, the current one first.
    var temporaryOwners: [String] = []
    /// Nil while the directory cannot be used.
    var files: FileDirectory?
    var adopting: [FilePath: Adopted] = [:]
    var unpublished: [FilePath: Unpublished] = [:]
    var comparison = DirectoryComparison()
    /// When removed files began to wait for the rest of the directory, and how many were seen since.
    var heldRemovals: (since: Int64, count: Int)?
    var retry = Retry()
    /// Files that are tried again now.
    var retried: [FilePath] = []

    /// The container of a rule; nil if its keys live elsewhere.
    init?(
        _ rule: FileRule,
        _ limits: Limits,
        holds: @escaping @Sendable (Bytes) -> Bool,
        _ notice: @escaping @Sendable (String) -> Void
    ) {
        guard let directory = rule.directory else { return nil }
        keys = ContainerKeys(rule, holds: holds)
        isShared = rule.isShared
        form = rule.form
        self.limits = limits
        problems = FileProblems(directory, log: notice)
    }

    /// The directory as the configuration names it.
    var location: String { problems.location }

    // MARK: From any thread

    /// Refuses to set a key whose file is too deep; those that are there stay, and may be deleted.
    static func checkDepth(
        of key: Bytes,
        at path: FilePath,
        _ limits: Limits
    ) throws(StateError) {
        guard path.depth > limits.fileDepth else { return }
        throw StateError(
            .rejected,
            "key \(StateError.quoted(key)) cannot be a file: its path has \(path.depth) names; the "
                + "limit is \(limits.fileDepth) (limits.fileDepth)"
        )
    }

    /// Whether others may have changed the file of a key, or any file if it is nil, before a time,
    /// and that is not known yet.
    func mayHaveChanged(_ key: Bytes?, before time: Int64) -> Bool {
        guard let watcher = used.withLock({ $0.watcher }) else { return false }
        guard let key else { return watcher.mayHaveChanged(nil, before: time) }
        guard let path = try? keys.path(of: key) else { return false }
        return watcher.mayHaveChanged(path, before: time)
    }

    /// All differences between files and entries.
    var refused: [(path: String, error: StateError)] {
        problems.all(used.withLock { $0.watcher }?.unwatched ?? [:])
    }

    /// Refuses writes to a key whose change is stored and whose file cannot be written, and
    /// schedules another try.
    func leaveUnpublished(_ path: FilePath, old: ValueDigest?, _ reason: String) {
        unpublished[path] = Unpublished(old: unpublished[path]?.old ?? old, reason: reason)
        problems.refuseWrites(to: path, reason)
        retry.begin()
    }

    /// Whether something was begun that the next look goes on with.
    var hasMore: Bool {
        !retried.isEmpty || files?.hasMore ?? false || comparison.isBegun
    }

    /// Whether edits are on their way to storage, which has everything up to `revision`.
    func isAdopting(after revision: Int64) -> Bool {
        adopting.values.contains { $0.revision > revision }
    }

    /// Returns true if a file holds `value` because of an edit that is on its way to storage; nil
    /// means that the file was removed.
    ///
    /// Revisions up to `revision` are on stable storage.
    func isAdopted(_ path: FilePath, as value: [UInt8]?, after revision: Int64) -> Bool {
        adopting[path].map { $0.revision > revision && $0.value == value } ?? false
    }
}
