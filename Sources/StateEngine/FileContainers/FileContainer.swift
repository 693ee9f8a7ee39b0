import CLinux
import Glibc
import StateSystem

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
    // Of whom the backing's turn is, after the opening.
    var limits: Limits
    var valueByteCount: Int { limits.valueByteCount }
    /// Whether a key of this prefix lives here, as the most specific rule says.
    let holds: @Sendable (Bytes) -> Bool
    /// Told of each thing that is found to be wrong, once.
    let notice: NoticeLimit

    /// What may be asked for from anywhere.
    struct Shown {
        var watcher: FileWatcher?
        /// Why the directory cannot be used.
        var loss: StateError?
        /// Why nothing can be written to it for a while; deletes can be tried.
        var failure: StateError?
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
    /// Of which stores temporary files are, the present one first.
    var temporaryMarks: [String] = []
    /// Nil while the directory cannot be used.
    var files: FileDirectory?
    var lock: DirectoryLock?
    var adopting: [FilePath: Adopted] = [:]
    var unpublished: [FilePath: Unpublished] = [:]
    /// What was known of the files when the directory was given up, until it is read again: what was accepted before and is committed
    /// meanwhile has to say what they hold.
    var lastKnown: [FilePath: KnownFile] = [:]
    /// Whether all of the directory is to be compared once it has come to rest, and until when that may wait.
    var rescanDeadline: Int64?
    /// Since when removed files wait for the rest of the directory.
    var removalsHeldSince: Int64?
    var retry = Retry()

    init(
        _ rule: FileRule,
        directory: String,
        limits: Limits,
        holds: @escaping @Sendable (Bytes) -> Bool,
        notice: @escaping @Sendable (String) -> Void
    ) {
        let literal = rule.keys.literal
        if rule.keys.kind == .key {
            only = literal
            prefix = Array(
                literal[..<(literal.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0)]
            )
        } else {
            only = nil
            prefix = literal
        }
        location = directory
        isShared = rule.isShared
        self.limits = limits
        self.holds = holds
        self.notice = NoticeLimit(directory, notice)
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
        path.isRoot ? location : "\(location)/\(path.shown)"
    }

    // MARK: From any thread

    /// Refuses a key that no file can have, or whose file cannot be written at the moment.
    func validate(_ key: Bytes, isDelete: Bool) throws(StateError) {
        let path = try path(of: key)
        let (loss, failure) = shown.withLock { ($0.loss, $0.failure) }
        if let loss { throw .obstructed(key, by: loss) }
        if let failure, !isDelete { throw .obstructed(key, by: failure) }
        guard let obstacle = obstacles.onTheWay(to: path) else { return }
        // What is wrong with a file is no word on the wire: the key cannot be written.
        let codes: [StateError.Code] = [.noPermission, .noSpace]
        let code = codes.contains(obstacle.code) ? obstacle.code : .readOnly
        throw .obstructed(key, by: StateError(code, obstacle.message))
    }

    /// Whether others may have changed the file of a key, or any file where it is nil, and that is not known yet.
    func mayHaveChanged(_ key: Bytes?) -> Bool {
        guard let watcher = shown.withLock({ $0.watcher }) else { return false }
        guard let key else { return watcher.mayHaveChanged(nil) }
        guard let path = try? path(of: key) else { return false }
        return watcher.mayHaveChanged(path)
    }

    /// Whether the directory is not in use.
    var isLost: Bool { shown.withLock { $0.loss != nil } }

    /// Everything that keeps files and entries apart.
    var refused: [(path: String, error: StateError)] {
        let shown = shown.withLock { $0 }
        var found = (shown.watcher?.unwatched ?? [:]).merging(shown.refusals) { $1 }
        found.merge(obstacles.all) { $1 }
        if let reason = shown.loss ?? shown.failure { found[.root] = reason }
        return found.map { (self.shown($0.key), $0.value) }.sorted { $0.path < $1.path }
    }

    // MARK: What is wrong

    /// A file whose value is refused is left, and its key keeps its value.
    func refuse(_ path: FilePath, _ error: StateError) {
        let isNew = shown.withLock { state in
            guard state.refusals.count < FileObstacles.limit || state.refusals[path] != nil else {
                return false
            }
            return state.refusals.updateValue(error, forKey: path) != error
        }
        if isNew { notice("\(shown(path)) is not taken over: \(error.message)") }
    }

    func accept(_ path: FilePath) {
        shown.withLock { if !$0.refusals.isEmpty { $0.refusals[path] = nil } }
    }

    /// What was wrong with a directory that is another now.
    func forgetFindings() {
        shown.withLock { $0.refusals = [:] }
        for path in obstacles.all.keys where unpublished[path] == nil { obstacles.remove(path) }
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

    /// Whether a file is as an edit has left it that is on its way to storage.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - value: What it holds; nil where it is gone.
    ///   - revision: The last one on stable storage.
    /// - Returns: False for any other value, and once the edit is stored.
    func isAdopted(_ path: FilePath, as value: [UInt8]?, after revision: Int64) -> Bool {
        adopting[path].map { $0.revision > revision && $0.value == value } ?? false
    }

    /// Nothing can be written here at the moment, and nothing was stored: writes are refused for a while, so that no other commit fails for
    /// it.
    ///
    /// - Returns: The refusal of the commit, which names no key: it is the answer to others, too.
    func leaveFailing(_ failure: FileFailure) -> StateError {
        let refusal = failure.refusal
        let error = StateError(
            refusal.code,
            "the directory \(location) cannot be written: \(failure.reason)"
        )
        let isNew = shown.withLock { state in
            defer { state.failure = error }
            return state.failure != error
        }
        if isNew { notice(error.message) }
        retry.begin()
        return StateError(error.code, "\(error.message); nothing was committed")
    }

    /// What failed may be tried again.
    func allowFailing() { shown.withLock { $0.failure = nil } }
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

        /// At once; the pauses after it are no shorter for that.
        mutating func hasten() { at = min(at ?? .max, clinux_monotonic_nanoseconds()) }

        /// There is nothing to try; where it fails again, after a longer pause.
        mutating func rest() { at = nil }

        mutating func end() { (at, pause) = (nil, 0) }

        var isDue: Bool { at.map { $0 <= clinux_monotonic_nanoseconds() } ?? false }
    }
}
