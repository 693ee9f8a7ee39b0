import CLinux
import StateSystem
import Synchronization

/// The directories whose files hold the values of keys, beside the history that all keys share.
///
/// A commit with keys that live in files takes four steps, whose order is the guarantee
/// (``CommitQueue/commit(_:)``): each new file is written beside its target and synced; the changes
/// are committed, with a list of the pending files (``PendingFileList``); the new files take their
/// places; the commit is acknowledged. Edits by others are adopted as ordinary commits whose cause
/// is `file`: they are stored, too. If such an edit meets a write, the edit comes after it. A
/// writer that checks ``mayHaveChanged(_:before:)`` first, and waits while it returns true, comes
/// after every edit that was complete before.
///
/// What is neither immutable nor under a lock belongs to the thread that has the backing: the proof
/// of `@unchecked Sendable`.
@usableFromInline
package final class FileContainers: @unchecked Sendable {
    let containers: [FileContainer]
    let rules: [FileRule]
    let table: FileRuleTable
    /// The container of each rule; nil for rules of keys that live elsewhere.
    let byRule: [FileContainer?]
    let notice: @Sendable (String) -> Void
    /// The memory limit of the process and its use; nil without a limit.
    let memory: @Sendable () -> MemoryBound?

    /// The limits of a reload, until the commit thread takes them.
    private let reloaded = StateLock<Limits?>(nil)
    /// The keyspace, from ``LocalKeyspace/attach(_:)`` until it is closed.
    let keyspace = StateLock<LocalKeyspace?>(nil)

    // Only for the thread that has the backing.
    /// The list of pending files that the store has.
    var storedList = StoredFileList.none
    /// When what is looked at.
    struct LookTurns {
        /// When the next piece of a look may begin, on the monotonic clock: others commit before.
        var next: Int64 = .min
        /// The container that is looked at first.
        var firstContainer = 0
        /// After failures, edits are adopted again at growing intervals.
        var retry = Retry()
    }

    var looks = LookTurns()

    /// Called between the steps of a commit, for tests: 1 is staged, 2 stored, 3 published; 0 is an
    /// opening that has filled directories.
    package var onStep: @Sendable (Int) -> Void = { _ in }

    private let alarm = StateLock<Int64?>(nil)
    private let parking = BlockingSemaphore()
    private let isStopping = Atomic(false)
    private let thread = WorkerThread(name: "directories")

    /// The containers of a configuration; nil if no key lives in files.
    ///
    /// - Parameters:
    ///   - rules: The rules that say where their keys live.
    ///   - limits: The largest file that counts as a value, and the largest number of files.
    ///   - memory: The memory limit of the process and its use; nil without a limit.
    ///   - notice: Called for each problem, with a sentence; from any thread.
    package init?(
        _ rules: [FileRule],
        limits: Limits,
        memory: @escaping @Sendable () -> MemoryBound? = { nil },
        notice: @escaping @Sendable (String) -> Void
    ) {
        guard rules.contains(where: { $0.directory != nil }) else { return nil }
        let table = FileRuleTable(rules)
        self.table = table
        self.rules = rules
        self.notice = notice
        self.memory = memory
        byRule = rules.enumerated().map { number, rule in
            FileContainer(rule, limits, holds: { table.rule(of: $0) == number }, notice)
        }
        containers = byRule.compactMap(\.self)
    }

    // MARK: From any thread

    /// The container of a key; nil if it does not live in a file.
    func container(of key: Bytes) -> FileContainer? {
        table.rule(of: key).flatMap { byRule[$0] }
    }

    /// Whether a key lives in a file.
    package func holds(_ key: Bytes) -> Bool { container(of: key) != nil }

    /// Whether others may have changed the file of `key` before a time of the monotonic clock, in
    /// nanoseconds, and that is not adopted yet.
    ///
    /// Every change before that time is seen, because the kernel has queued its event. Reads no
    /// file.
    package func mayHaveChanged(_ key: Bytes, before time: Int64) -> Bool {
        container(of: key)?.mayHaveChanged(key, before: time) ?? false
    }

    /// The same for any file of all containers.
    package func mayHaveChanged(before time: Int64) -> Bool {
        containers.contains { $0.mayHaveChanged(nil, before: time) }
    }

    /// All differences between files and entries, each with the path of the file.
    ///
    /// Values that a rule refuses, names that are not those of keys, links, pipes, files that are
    /// too large or cannot be written, missing directories.
    package var refused: [(path: String, error: StateError)] { containers.flatMap(\.refused) }

    /// The text for STATE.STATUS.
    package var report: String {
        let refused = refused
        guard let first = refused.first else { return "ok" }
        let more = refused.count > 1 ? " (and \(refused.count - 1) more)" : ""
        return "\(first.path): \(first.error.message)\(more)"
    }

    /// Makes the commit thread use other limits, and accept the directories at the paths of those
    /// that are not in use.
    package func reload(limits: Limits) {
        reloaded.withLock { $0 = limits }
        wake()
    }

    func takeReload() -> Limits? {
        reloaded.withLock { $0.take() }
    }

    // MARK: The thread that looks after the directories

    func start() { thread.start { [unowned self] in run() } }

    /// Makes the commit thread check if a directory is no longer at its path, or a retry is due.
    ///
    /// The kernel queues no event if a directory is unmounted, or moved with one above it: this
    /// checks once a second.
    private func run() {
        while !isStopping.load(ordering: .acquiring) {
            let now = clinux_monotonic_nanoseconds()
            let isDue = alarm.withLock { alarm in
                guard let time = alarm, time <= now else { return false }
                alarm = nil
                return true
            }
            if isDue || containers.contains(where: { $0.problems.isLost || !$0.isInPlace }) {
                wake()
            }
            let rest = alarm.withLock { $0 }.map { max(1, $0 - now) } ?? .max
            parking.wait(nanoseconds: min(rest, 1_000_000_000))
        }
    }

    /// Makes the commit thread check at a time, or before.
    func wake(at time: Int64) {
        alarm.withLock { $0 = min($0 ?? .max, time) }
        parking.signal()
    }

    var wake: @Sendable () -> Void {
        { [weak self] in self?.keyspace.withLock { $0 }?.queue.submit(.look) }
    }

    /// Stops watching; nothing is adopted or published afterwards.
    func close() {
        keyspace.withLock { $0 = nil }
        isStopping.store(true, ordering: .releasing)
        parking.signal()
        thread.join()
        for container in containers { container.release() }
    }
}
