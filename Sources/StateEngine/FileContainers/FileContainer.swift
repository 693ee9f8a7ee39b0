import CLinux
import Glibc

/// The files of one rule: a directory, and the keys that live in it.
///
/// Of whom the backing's turn is, but for what is immutable and what has a lock of its own: the proof of `@unchecked Sendable`.
final class FileContainer: @unchecked Sendable {
    // Immutable.
    /// What each key begins with before the part that is its file's path.
    let prefix: [UInt8]
    /// The one key of a rule for one.
    let only: [UInt8]?
    /// The directory as the configuration names it.
    let location: String
    let isShared: Bool
    let valueByteCount: Int
    /// Whether a key of this prefix lives here, as the most specific rule says.
    let holds: @Sendable (Bytes) -> Bool
    /// Told of each thing that is found to be wrong, once.
    let notice: @Sendable (String) -> Void

    /// What may be asked for from anywhere.
    struct Shown {
        var watcher: FileWatcher?
        /// Why the directory cannot be used.
        var loss: StateError?
        /// Files whose values are refused, and keep the file and the container apart.
        var refusals: [FilePath: StateError] = [:]
        /// The directory that is used, or was used last.
        var identity: DirectoryIdentity?
    }

    let shown = StateLock(Shown())
    let obstacles = FileObstacles()

    /// An edit that is a transaction on its way to storage.
    struct Adopted {
        var revision: Int64
        /// Nil where the file is gone.
        var value: [UInt8]?
    }

    /// A key whose row is on stable storage and whose file is not.
    struct Unpublished {
        /// What the file held before.
        var old: ValueMark?
        var reason: String
    }

    // Of whom the backing's turn is.
    /// Nil while the directory cannot be used.
    var files: FileDirectory?
    private(set) var lock: OwnerLock?
    var adopting: [FilePath: Adopted] = [:]
    var unpublished: [FilePath: Unpublished] = [:]
    /// Whether all of the directory is to be compared once it has come to rest, and until when that may wait.
    var rescanDeadline: Int64?
    /// Since when removed files wait for the rest of the directory.
    var removalsHeldSince: Int64?
    var retry = Retry()

    init(
        _ rule: FileRule,
        directory: String,
        valueByteCount: Int,
        holds: @escaping @Sendable (Bytes) -> Bool,
        notice: @escaping @Sendable (String) -> Void
    ) {
        let literal = rule.keys.literal
        if rule.keys.kind == .key {
            only = literal
            prefix = Array(literal[..<(literal.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0)])
        } else {
            only = nil
            prefix = literal
        }
        location = directory
        isShared = rule.isShared
        self.valueByteCount = valueByteCount
        self.holds = holds
        self.notice = notice
    }

    // MARK: Names

    /// The file of a key that lives here.
    ///
    /// - Throws: ``StateError/Code/rejected``, naming the key and what is wrong with it.
    func path(of key: Bytes) throws(StateError) -> FilePath {
        try FileName.path(of: key, from: prefix.count)
    }

    /// The key whose value a file is; nil where it is none of this container.
    func key(of path: FilePath) -> Key? {
        guard let relative = FileName.key(of: path),
            let key = try? Key(bytes: prefix + relative.bytes),
            key.bytes.withUnsafeBytes({ holds($0) })
        else { return nil }
        return key
    }

    /// A place as people name it.
    func shown(_ path: FilePath) -> String {
        path.isRoot ? location : "\(location)/\(String(decoding: path.bytes, as: UTF8.self))"
    }

    // MARK: From any thread

    /// Refuses a key that no file can have, or whose file cannot be written at the moment.
    func validate(_ key: Bytes) throws(StateError) {
        let path = try path(of: key)
        if let loss = shown.withLock({ $0.loss }) { throw .obstructed(key, by: loss) }
        if let obstacle = obstacles.onTheWay(to: path) { throw .obstructed(key, by: obstacle) }
    }

    /// Whether others may have changed the file of a key, or any file where it is nil, and that is not known yet.
    func mayHaveChanged(_ key: Bytes?) -> Bool {
        guard let watcher = shown.withLock({ $0.watcher }) else { return false }
        guard let key else { return watcher.mayHaveChanged(nil) }
        guard let path = try? path(of: key) else { return false }
        return watcher.mayHaveChanged(path)
    }

    /// Everything that keeps files and entries apart.
    var refused: [(path: String, error: StateError)] {
        let (loss, refusals) = shown.withLock { ($0.loss, $0.refusals) }
        var found = refusals.merging(obstacles.all) { $1 }
        if let loss { found[.root] = loss }
        return found.map { (shown($0.key), $0.value) }.sorted { $0.path < $1.path }
    }

    // MARK: What is wrong

    /// A file whose value is refused is left, and its key keeps its value.
    func refuse(_ path: FilePath, _ error: StateError) {
        let isNew = shown.withLock { $0.refusals.updateValue(error, forKey: path) != error }
        if isNew { notice("\(shown(path)) is not taken over: \(error.message)") }
    }

    func accept(_ path: FilePath) {
        shown.withLock { if !$0.refusals.isEmpty { $0.refusals[path] = nil } }
    }

    /// A key whose row is stored cannot be written to its file: it is refused, and tried again.
    func leaveUnpublished(_ path: FilePath, old: ValueMark?, _ reason: String) {
        unpublished[path] = Unpublished(old: unpublished[path]?.old ?? old, reason: reason)
        let error = StateError(.readOnly, "its file cannot be written: \(reason)")
        if obstacles.put(error, at: path) {
            notice("\(shown(path)) cannot be written, and is tried again: \(reason)")
        }
        retry.begin()
    }

    // MARK: The directory

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
                    notice("\(shown(path)) is left alone: \(error.message)")
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

}

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

extension FileContainer {
    /// When something that failed is tried again: after 0.1 s, 0.2 s and so on up to 10 s.
    struct Retry {
        private(set) var at: Int64?
        private var pause: Int64 = 0

        var pauseNanoseconds: Int64 { pause }

        mutating func begin() {
            if at == nil { next() }
        }

        mutating func next() {
            pause = min(max(pause * 2, 100_000_000), 10_000_000_000)
            at = clinux_monotonic_nanoseconds() + pause
        }

        mutating func end() { (at, pause) = (nil, 0) }

        var isDue: Bool { at.map { $0 <= clinux_monotonic_nanoseconds() } ?? false }
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
