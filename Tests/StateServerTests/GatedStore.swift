import StateEngine
import StateSQLite
import StateTestSupport

/// A store on disk whose commits and whose readings of the history wait where a test says so.
///
/// A gate that was forgotten opens after 20 seconds.
final class GatedStore: HistoryBacking {
    private struct Gates {
        var holdsCommits = false
        var holdsReading = false
        /// Commits and readings that wait.
        var waitingCommits = 0
        var waitingReaders = 0
        /// Readings that were begun.
        var readingCount = 0
        var compacted: Int64 = 0
        /// What the next commit fails with.
        var failure: StateError?
        /// The thread of the last commit.
        var committer = ""
    }

    private let directory: TemporaryDirectory
    private let store: SQLiteBacking
    private let gates = Observed(Gates())
    let isPersistent = true
    var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.history = self
        return capabilities
    }

    init() throws {
        directory = try TemporaryDirectory()
        store = SQLiteBacking(directory: directory.path(of: "data"))
    }

    // MARK: The test's side

    func holdCommits() { gates.update { $0.holdsCommits = true } }

    func holdReading() { gates.update { $0.holdsReading = true } }

    func openCommits() { gates.update { $0.holdsCommits = false } }

    func openReading() { gates.update { $0.holdsReading = false } }

    /// Waits until somebody is about to read the history.
    func waitForReader() -> Bool { gates.wait { $0.waitingReaders > 0 } }

    /// How often the history was looked at.
    var readingCount: Int { gates.current.readingCount }

    /// Waits until a commit waits.
    func waitForCommit() -> Bool { gates.wait { $0.waitingCommits > 0 } }

    /// The next commit fails, and nothing of it is stored.
    func failCommit(_ error: StateError) { gates.update { $0.failure = error } }

    /// The name of the thread that has made the last commit.
    var committer: String { gates.current.committer }

    /// From now on the history says that it begins there.
    func compact(to revision: Int64) { gates.update { $0.compacted = revision } }

    // MARK: Backing

    func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        try store.load(receive)
    }

    func commit(_ batch: borrowing CommitBatch) throws {
        let name = try readFile("/proc/thread-self/comm")
        gates.update {
            $0.waitingCommits += 1
            $0.committer = String(decoding: name.dropLast(), as: UTF8.self)
        }
        _ = gates.wait { !$0.holdsCommits }
        gates.update { $0.waitingCommits -= 1 }
        let failure = gates.update { gates in
            defer { gates.failure = nil }
            return gates.failure
        }
        if let failure { throw failure }
        try store.commit(batch)
    }

    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String?] {
        try store.reopen(after: revision, receive)
    }

    func close() { store.close() }

    func openHistory() throws -> any HistoryReading {
        Reading(try store.openHistory(), gates)
    }

    /// What the store's own history has, behind the gate.
    private final class Reading: HistoryReading {
        private let history: any HistoryReading
        private let gates: Observed<Gates>

        init(_ history: any HistoryReading, _ gates: Observed<Gates>) {
            self.history = history
            self.gates = gates
        }

        func snapshot<R>(_ body: (_ compacted: Int64) throws -> R) throws -> R {
            gates.update {
                $0.waitingReaders += 1
                $0.readingCount += 1
            }
            _ = gates.wait { !$0.holdsReading }
            gates.update { $0.waitingReaders -= 1 }
            return try history.snapshot { try body(max($0, gates.current.compacted)) }
        }

        func floors() throws -> HistoryFloors { try history.floors() }

        func forEachChange(
            after place: HistoryPlace,
            through revision: Int64,
            _ receive: (borrowing StoredChange) -> Bool
        ) throws -> Bool {
            try history.forEachChange(after: place, through: revision, receive)
        }

        func withChange(
            at place: HistoryPlace,
            supersededBy successor: HistoryPlace?,
            _ receive: (borrowing StoredChange) -> Void
        ) throws -> Bool {
            try history.withChange(at: place, supersededBy: successor, receive)
        }
    }
}
