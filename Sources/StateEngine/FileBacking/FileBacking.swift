import CLinux
import StatePlatform
import StateSystem

/// One file for each key, below a directory: the value as it is, for people, editors, git and
/// configuration management.
///
/// `FileName` determines the file of a key. A commit writes each new file beside its target, with
/// the old one's mode and owner, and syncs it; then come the renames and the sync of each
/// directory. If it changes several files, a journal makes them atomic across a crash. Edits of the
/// files by others are adopted as commits whose cause is `file`.
///
/// The files hold values and nothing else: each start has a new epoch, with every entry at its
/// first revision.
///
/// `.stated` in the directory holds the journal; both are locked. ``load(_:)`` is
/// first and once, everything after it is one call at a time, as ``Backing`` requires;
/// ``validate(_:)`` and ``unreadable`` may be called from anywhere. That, and the lock around what
/// they read, is the proof of `@unchecked Sendable`.
public final class FileBacking: EditableBacking, @unchecked Sendable {
    /// True: what is committed outlives the process.
    public let isPersistent = true
    /// Others may change the files, too.
    public var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.editing = self
        return capabilities
    }
    /// The directory, as it was given.
    public let directory: String

    /// A file that does not hold a value, and why.
    public struct Unreadable: Hashable, Sendable {
        /// Its place below the directory.
        public var path: String
        /// What is wrong with it.
        public var error: StateError
    }

    let valueByteCount: Int
    private let newFileMode: mode_t
    private let isShared: Bool
    let onUnreadable: @Sendable (Unreadable) -> Void

    // From load to close; only for the thread that has the backing.
    var files: FileDirectory?
    var place: DirectoryPlace?
    /// The remaining steps of a commit whose outcome is unknown.
    var unfinished: UnfinishedCommit?
    /// Edits that a commit has found.
    var met: [OutsideChange] = []
    /// How many commits in a row have found edits.
    var meetingCount = 0

    private let obstacles = FileObstacles()
    private let home = HomeProcess()

    /// A store in a directory, which is created with mode 0700 if it is missing.
    ///
    /// Nothing is opened until ``load(_:)``.
    ///
    /// - Parameters:
    ///   - directory: The directory of the files.
    ///   - isShared: Whether other users than root and this process's user may write to the
    ///     directory itself.
    ///   - newFileMode: The mode of a new file; a file that replaces another keeps the old mode.
    ///   - valueByteCount: The largest file that counts as a value; not below the limit of the
    ///     keyspace.
    ///   - onUnreadable: Called by the thread that uses the backing, for each file that turns out
    ///     not to hold a value; see ``unreadable``.
    public init(
        directory: String,
        isShared: Bool = false,
        newFileMode: UInt32 = 0o600,
        valueByteCount: Int = Limits().valueByteCount,
        onUnreadable: @escaping @Sendable (Unreadable) -> Void = { _ in }
    ) {
        self.directory = directory
        self.isShared = isShared
        self.newFileMode = mode_t(newFileMode)
        self.valueByteCount = valueByteCount
        self.onUnreadable = onUnreadable
    }

    /// What is in the place of keys but is not a value: directories, links, pipes, files that are
    /// too large or not readable.
    ///
    /// They are left unchanged, the entries keep their values, and a write to such a key is
    /// refused.
    public var unreadable: [Unreadable] {
        obstacles.all.map { Unreadable(path: $0.key.description, error: $0.value) }
            .sorted { $0.path < $1.path }
    }

    /// Refuses a key that no file can have, or whose place holds something that could not be read.
    ///
    /// - Throws: ``StateError/Code/rejected``, or the reason why the place could not be read.
    /// - Complexity: O(*n*) in the bytes of the key.
    public func validate(_ key: Bytes) throws(StateError) {
        let path = try FileName.path(of: key)
        if let obstacle = obstacles.onTheWay(to: path) { throw .obstructed(key, by: obstacle) }
    }

    /// Begins to report edits.
    public func watchOutside(_ wake: @escaping @Sendable () -> Void) {
        files?.watcher.setWake(wake)
    }

    /// Stops watching and releases the lock; a child that was forked leaves both to its parent.
    public func close() {
        if home.isCurrent { files?.watcher.stop() }
        files = nil
    }

    // MARK: Opening

    /// Opens the directory, finishes a commit that a crash interrupted, and reads every file.
    ///
    /// - Parameter receive: Called for each value; the bytes in it are valid during the call.
    /// - Returns: A new epoch.
    /// - Throws: ``StateError``: ``StateError/Code/locked`` with the owner's pid, or
    ///   ``StateError/Code/storage`` if the directory cannot be used or others may write to it. No
    ///   file of a key was touched then.
    /// - Complexity: O(*n*) in the bytes of the files.
    public func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        precondition(files == nil, "\(directory) is loaded already")
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StateError(.storage, "\(directory) cannot be created: \(lastSystemError())")
        }
        let tree = try FileTree(directory)
        do {
            if !isShared { try TrustedPath.checkOwner(tree.root, directory) }
            let lock = try DirectoryLock(tree.root, for: directory)
            try tree.prepare()
            // Others cannot open this one, so none of them has its lock.
            let own = try tree.directory(FileJournal.directory)
            let locks = [lock, try DirectoryLock(own, for: directory)]
            try replayJournal(in: tree)
            let onUnreadable = onUnreadable
            var limits = Limits()
            limits.valueByteCount = valueByteCount
            // Order matters: an edit from here on is detected.
            let files = try FileDirectory(
                tree,
                locks: locks,
                obstacles: obstacles,
                limits: limits,
                edits: .below,
                newFileMode: newFileMode,
                keyOf: FileName.key(of:),
                report: { onUnreadable(Unreadable(path: $0.description, error: $1)) }
            )
            let count = readAll(files, receive)
            place = try DirectoryPlace(directory, tree.root)
            self.files = files
            files.watcher.start()
            return LoadedStore(epoch: .random(), revision: count > 0 ? 1 : 0)
        } catch let failure as FileFailure {
            throw StateError(.storage, "\(directory) cannot be used: \(failure.sentence)")
        }
    }

    private func replayJournal(in tree: FileTree) throws {
        guard try tree.status(FileJournal.path) != nil,
            case .value(let bytes, _)? = try tree.contents(of: FileJournal.path, limit: 1 << 30)
        else { return }
        if let steps = FileJournal.decoded(bytes) {
            var publisher = FilePublisher(tree)
            try publisher.take(steps)
        }
        try tree.removeJournal()
    }
}
