import CLinux

/// What the commit thread has to do besides queued commits, the most urgent first.
enum CommitWork {
    /// The store is reopened, after a commit whose outcome is unknown.
    case reopen
    /// The settling thread is notified: there is something to deliver that nobody is delivering.
    case notify
    /// More revisions are reserved, at this time of the monotonic clock in nanoseconds.
    case reserve(at: Int64)
    /// Runs between two commits, once all answers of storage are settled; with false if the queue
    /// stops before.
    ///
    /// Nothing is committed until it has run: a comparison of files with entries has to see what is
    /// stored.
    case run(@Sendable (_ isOpen: Bool) -> Void)
    /// Others may have changed the store.
    case look
    /// The history is compacted, if there is nothing to commit.
    case compact(CompactionRequest)
    /// The thread ends, once everything queued is committed.
    case stop

    fileprivate var urgency: Int {
        switch self {
        case .reopen: 0
        case .notify: 1
        case .reserve: 2
        case .run: 3
        case .look: 4
        case .compact: 5
        case .stop: 6
        }
    }

    /// Whether it may run before the effects of a failed commit are settled.
    fileprivate var isUrgent: Bool {
        switch self {
        case .reopen, .notify, .reserve, .stop: true
        case .run, .look, .compact: false
        }
    }

    /// Whether a writer may commit before it is done.
    fileprivate var letsWritersCommit: Bool {
        switch self {
        case .notify, .reserve, .compact: true
        case .reopen, .run, .look, .stop: false
        }
    }

    /// Whether somebody waits for it, who must be refused at the end.
    fileprivate var isAwaited: Bool {
        switch self {
        case .notify, .run, .compact: true
        case .reopen, .reserve, .look, .stop: false
        }
    }
}

/// Work in order of urgency; work of the same urgency in order of arrival.
struct CommitWorkList {
    private var items: [CommitWork] = []

    var isEmpty: Bool { items.isEmpty }

    /// Whether the thread must end.
    var isStopping: Bool {
        if case .stop? = items.last { true } else { false }
    }

    /// Whether something waits until the answers of storage are settled.
    var awaitsSettling: Bool {
        !isStopping && items.contains { if case .run = $0 { true } else { false } }
    }

    var hasUrgent: Bool { items.contains(where: \.isUrgent) }

    var letsWritersCommit: Bool { items.allSatisfy(\.letsWritersCommit) }

    var asksForCompaction: Bool {
        items.contains { if case .compact = $0 { true } else { false } }
    }

    /// When revisions must be reserved, in nanoseconds of the monotonic clock; nil if not at all.
    var reservationTime: Int64? {
        for case .reserve(let time) in items { return time }
        return nil
    }

    /// Adds work.
    ///
    /// Work that is already in the list is not added twice, unless somebody waits for each.
    ///
    /// - Returns: Whether it will be done: at the end nobody may wait for it.
    mutating func submit(_ work: CommitWork) -> Bool {
        guard !isStopping || !work.isAwaited else { return false }
        let place = items.firstIndex { $0.urgency >= work.urgency } ?? items.count
        switch work {
        case .run, .compact:
            let end = items.firstIndex { $0.urgency > work.urgency } ?? items.count
            items.insert(work, at: end)
        default:
            let isThere = place < items.count && items[place].urgency == work.urgency
            if isThere { items[place] = work } else { items.insert(work, at: place) }
        }
        return true
    }

    /// Takes the most urgent work that can be done now, except compaction and the end, which come
    /// after what is queued.
    ///
    /// - Parameter isHeldUp: Whether the answers of storage must be settled first.
    /// - Returns: Nil if there is none.
    mutating func take(isHeldUp: Bool) -> CommitWork? {
        let isStopping = isStopping
        let place = items.firstIndex { work in
            switch work {
            case .reopen, .notify: true
            // At the end nothing is reported any more.
            case .reserve(let time): !isStopping && time <= clinux_monotonic_nanoseconds()
            case .run, .look: !isStopping && !isHeldUp
            case .compact, .stop: false
            }
        }
        return place.map { items.remove(at: $0) }
    }

    /// Takes all compaction requests.
    mutating func takeCompactions() -> [CompactionRequest] {
        defer { items.removeAll { if case .compact = $0 { true } else { false } } }
        return items.compactMap { if case .compact(let request) = $0 { request } else { nil } }
    }

    /// Takes everything that was to run between two commits.
    mutating func takeRuns() -> [@Sendable (_ isOpen: Bool) -> Void] {
        defer { items.removeAll { if case .run = $0 { true } else { false } } }
        return items.compactMap { if case .run(let body) = $0 { body } else { nil } }
    }
}

extension CommitQueue {
    /// What is being done with the backing: a number that is new for each thing, and the thread.
    struct Doing {
        var number = 0
        var thread: UInt = 0

        mutating func begin() { (number, thread) = (number + 1, clinux_current_thread()) }
    }

    /// What is being done, and the processor time that its thread has ever used; nil if nothing is,
    /// or if the system does not say.
    var use: (number: Int, nanoseconds: Int64)? {
        state.withLock { state in
            // Order matters: a thread that has the backing cannot end.
            guard state.committer != .nobody else { return nil }
            let nanoseconds = clinux_thread_nanoseconds(state.doing.thread)
            return nanoseconds < 0 ? nil : (state.doing.number, nanoseconds)
        }
    }

    /// A commit whose files take so many steps is not joined by others, which would wait for them.
    static let fileStepCount = 2_500

    /// Nor is one of so many bytes: each byte of a commit is in memory three more times while it is made.
    static let byteCount = 8 << 20
}

extension CommitQueue.State {
    /// Adds transactions to the last batch, or in a new one.
    mutating func queue(_ batch: CommitBatch) {
        if let last = queued.last,
            last.fileSteps + batch.fileSteps <= CommitQueue.fileStepCount,
            last.byteCount + batch.byteCount <= CommitQueue.byteCount
        {
            return last.take(batch)
        }
        let next = spare.popLast() ?? CommitBatch()
        next.take(batch)
        queued.append(next)
    }

    /// How many transactions are queued.
    var queuedCount: Int { queued.reduce(0) { $0 + $1.transactionCount } }

    /// Whether the answers of storage must be settled before anything is committed.
    var isHeldUp: Bool { isHalted || work.awaitsSettling && !finished.isEmpty }

    /// Whether there is something for the commit thread to do.
    var hasWork: Bool {
        work.hasUrgent || !isHeldUp && (!queued.isEmpty || !work.isEmpty || mustStore)
    }

    /// Whether commits wait that nobody takes: for a moment while the thread wakes up.
    ///
    /// Not while storage is slow, closed, or has failed, nor for work that waits for its time, such as
    /// the reservation of revisions: the thread does all that.
    var isNeglected: Bool {
        !queued.isEmpty && committer == .nobody && !isHeldUp && openingError == nil
    }

    /// Whether the thread was woken for other work and does not run yet; it commits what is queued.
    ///
    /// Otherwise writers who commit all the time could come first again and again.
    var isThreadDue: Bool { wakingCount == nil && !(work.isEmpty && storeRequests.isEmpty) }

    /// Whether it is time to store what is deferred.
    var mustStore: Bool {
        !storeRequests.isEmpty || storeAt < .max && storeAt <= clinux_monotonic_nanoseconds()
    }

    /// Whether the commit thread must be signalled; if so, it was parked.
    ///
    /// False while a writer commits; the writer checks afterwards.
    mutating func wakes() -> Bool {
        guard wakingCount != nil, committer != .writer, hasWork else { return false }
        wakingCount = nil
        return true
    }

    /// The step to take if there is nothing to do.
    var idleness: CommitQueue.Step {
        guard let time = work.reservationTime else { return .wait(nanoseconds: nil) }
        return .rest(nanoseconds: max(1, time - clinux_monotonic_nanoseconds()))
    }
}

/// What the commit thread has done since its start; all counts rise only.
package struct CommitMeter: Sendable {
    /// Transactions that are durable, and how many batches they were.
    package private(set) var commitCount = 0
    package private(set) var batchCount = 0
    /// Transactions that failed.
    package internal(set) var failedCount = 0
    /// Changes, and the bytes of their keys and values.
    package private(set) var changeCount = 0
    package private(set) var byteCount = 0
    /// The time of all batches until they were durable, in nanoseconds.
    package private(set) var nanoseconds: Int64 = 0
    /// Batches by their time: those up to each of ``bounds``, then all others.
    package private(set) var counts = [Int](repeating: 0, count: CommitMeter.bounds.count + 1)

    /// In microseconds.
    package static let bounds: [Int64] = [
        100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
        1_000_000, 2_500_000, 10_000_000,
    ]

    mutating func note(
        _ commits: Int,
        _ changes: Int,
        _ bytes: Int,
        _ nanoseconds: Int64
    ) {
        batchCount += 1
        commitCount += commits
        changeCount += changes
        byteCount += bytes
        self.nanoseconds += nanoseconds
        let microseconds = nanoseconds / 1_000
        counts[CommitMeter.bounds.firstIndex { microseconds <= $0 } ?? counts.count - 1] += 1
    }
}
