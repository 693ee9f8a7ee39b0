import StateSystem

/// Differences between the files of one directory and their keys: the refusals of writes, and the
/// report for STATE.STATUS.
///
/// Any thread may ask. Each problem is logged once, when it is new.
final class FileProblems: Sendable {
    /// The directory as the configuration names it.
    let location: String
    /// What obstructs writes.
    let obstacles = FileObstacles()
    /// Files whose values are refused, so that file and entry differ.
    private let refusals = FileObstacles()
    private let log: NoticeLimit

    private struct State {
        /// Why the directory cannot be used.
        var loss: StateError?
        /// Why nothing can be written to it now; deletes may be tried.
        var failure: StateError?
    }

    private let state = StateLock(State())

    init(_ location: String, log: @escaping @Sendable (String) -> Void) {
        self.location = location
        self.log = NoticeLimit(location, log)
    }

    /// The path of a file in messages.
    func shown(_ path: FilePath) -> String {
        path.isRoot ? location : "\(location)/\(path.shown)"
    }

    /// Refuses a key whose file cannot be written now.
    func validate(_ key: Bytes, at path: FilePath, isDelete: Bool) throws(StateError) {
        let (loss, failure) = state.withLock { ($0.loss, $0.failure) }
        if let loss { throw .obstructed(key, by: loss) }
        if let failure, !isDelete { throw .obstructed(key, by: failure) }
        guard let obstacle = obstacles.onTheWay(to: path) else { return }
        // The protocol has no codes for problems of files: the key cannot be written.
        let codes: [StateError.Code] = [.noPermission, .noSpace]
        let code = codes.contains(obstacle.code) ? obstacle.code : .readOnly
        throw .obstructed(key, by: StateError(code, obstacle.message))
    }

    /// Whether the directory is not in use.
    var isLost: Bool { state.withLock { $0.loss != nil } }

    /// All of them, sorted by path; `unwatched` are directories that cannot be watched.
    func all(_ unwatched: [FilePath: StateError]) -> [(path: String, error: StateError)] {
        var found = unwatched.merging(refusals.all) { $1 }
        found.merge(obstacles.all) { $1 }
        if let reason = state.withLock({ $0.loss ?? $0.failure }) { found[.root] = reason }
        return found.map { (shown($0.key), $0.value) }.sorted { $0.path < $1.path }
    }

    /// Records a file whose value is refused: the file is left alone, and its key keeps its value.
    func refuse(_ path: FilePath, _ error: StateError) {
        if refusals.put(error, at: path) {
            log("\(shown(path)) is ignored: \(error.message)")
        }
    }

    func accept(_ path: FilePath) { refusals.remove(path) }

    /// Refuses writes to a key whose change is stored, but whose file cannot be written.
    func refuseWrites(to path: FilePath, _ reason: String) {
        let error = StateError(.readOnly, "its file cannot be written: \(reason)")
        if obstacles.put(error, at: path) {
            log("\(shown(path)) cannot be written, retrying: \(reason)")
        }
    }

    /// Logs that another daemon may use the directory.
    func noteUnknownOwner() {
        log(
            "the directory \(location) is locked by a process of another PID namespace or user, which "
                + "may be another daemon: give each daemon a directory of its own"
        )
    }

    /// Logs an entry of the directory that is not a value.
    func skip(_ path: FilePath, _ error: StateError) {
        log("\(shown(path)) is ignored: \(error.message)")
    }

    /// Forgets the files of another directory, except obstacles for which `isKept` returns true.
    func forgetFiles(except isKept: (FilePath) -> Bool) {
        refusals.removeAll { _ in true }
        obstacles.removeAll { !isKept($0) }
    }

    /// The directory cannot be used: its keys keep their values, and writes to them are refused.
    func lose(_ reason: String) {
        if state.withLock({ exchange(&$0.loss, StateError(.readOnly, reason)) }) {
            log("\(reason); its keys keep their values, and writes to them are refused")
        }
    }

    /// Writes are allowed again.
    func recover() {
        if state.withLock({ exchange(&$0.loss, nil) }) {
            log("the directory \(location) is in use again")
        }
    }

    /// Nothing can be written to the directory, and nothing was stored: writes are refused, so that
    /// no other commit fails because of it.
    ///
    /// - Returns: The error of the commit. It names no key, because it also answers others.
    func fail(_ failure: FileFailure) -> StateError {
        let error = StateError(
            failure.refusal.code,
            "the directory \(location) cannot be written: \(failure.reason)"
        )
        if state.withLock({ exchange(&$0.failure, error) }) { log(error.message) }
        return StateError(error.code, "\(error.message); nothing was committed")
    }

    /// Allows another try after a failure.
    func allowWrites() { state.withLock { $0.failure = nil } }

    /// Returns true if that changed the error.
    private func exchange(_ error: inout StateError?, _ new: StateError?) -> Bool {
        defer { error = new }
        return error != new
    }
}
