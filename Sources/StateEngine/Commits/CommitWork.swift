import CLinux

/// What there is for the commit thread to do beside what is queued to be committed, the most urgent first.
enum CommitWork {
    /// The store is opened anew, after a commit whose outcome is unknown.
    case reopen
    /// The backing has something to do that takes its time.
    case maintain
    /// Who settles is notified: there is something to hand out that nobody is about.
    case notify
    /// More revisions are reserved, at this time of the monotonic clock in nanoseconds.
    case reserve(at: Int64)
    /// Runs between two commits, once all that storage has answered is settled; with false if the end comes before.
    ///
    /// Nothing is committed until it has run: who compares files with entries has to see what is stored.
    case run(@Sendable (_ isOpen: Bool) -> Void)
    /// Others may have changed the store.
    case look
    /// The history is compacted, if there is nothing to commit.
    case compact(CompactionRequest)
    /// The thread ends, once what is queued is committed.
    case stop

    fileprivate var urgency: Int {
        switch self {
        case .reopen: 0
        case .maintain: 1
        case .notify: 2
        case .reserve: 3
        case .run: 4
        case .look: 5
        case .compact: 6
        case .stop: 7
        }
    }

    /// Whether it need not wait until what a failed commit has undone is settled.
    fileprivate var isUrgent: Bool {
        switch self {
        case .reopen, .maintain, .notify, .reserve, .stop: true
        case .run, .look, .compact: false
        }
    }

    /// Whether a writer may commit before it is done.
    fileprivate var letsWritersCommit: Bool {
        switch self {
        case .notify, .reserve, .compact: true
        case .reopen, .maintain, .run, .look, .stop: false
        }
    }

    /// Whether somebody waits for it, who has to be refused at the end.
    fileprivate var isAwaited: Bool {
        switch self {
        case .notify, .run, .compact: true
        case .reopen, .maintain, .reserve, .look, .stop: false
        }
    }
}

/// Work in order of urgency; of the same urgency in the order in which it came.
struct CommitWorkList {
    private var items: [CommitWork] = []

    var isEmpty: Bool { items.isEmpty }

    /// Whether the thread is to end.
    var isStopping: Bool {
        if case .stop? = items.last { true } else { false }
    }

    /// Whether something waits for the thread to settle what storage has answered.
    var awaitsSettling: Bool {
        !isStopping && items.contains { if case .run = $0 { true } else { false } }
    }

    var hasUrgent: Bool { items.contains(where: \.isUrgent) }

    var letsWritersCommit: Bool { items.allSatisfy(\.letsWritersCommit) }

    var asksForCompaction: Bool {
        items.contains { if case .compact = $0 { true } else { false } }
    }

    /// When revisions are to be reserved, in nanoseconds of the monotonic clock; nil if they need not be.
    var reservationTime: Int64? {
        for case .reserve(let time) in items { return time }
        return nil
    }

    /// Adds work; what is there already need not be done twice, unless somebody waits for each.
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

    /// Takes the most urgent work that can be done now, but for compaction and the end, which come after what is queued.
    ///
    /// - Parameter isHeldUp: Whether what storage has answered has to be settled first.
    /// - Returns: Nil if there is none.
    mutating func take(isHeldUp: Bool) -> CommitWork? {
        let isStopping = isStopping
        let place = items.firstIndex { work in
            switch work {
            case .reopen, .maintain, .notify: true
            // Nothing is reported any more at the end.
            case .reserve(let time): !isStopping && time <= clinux_monotonic_nanoseconds()
            case .run, .look: !isStopping && !isHeldUp
            case .compact, .stop: false
            }
        }
        return place.map { items.remove(at: $0) }
    }

    /// Takes all that was asked of compaction.
    mutating func takeCompactions() -> [CompactionRequest] {
        defer { items.removeAll { if case .compact = $0 { true } else { false } } }
        return items.compactMap { if case .compact(let request) = $0 { request } else { nil } }
    }

    /// Takes all that was to run between two commits.
    mutating func takeRuns() -> [@Sendable (_ isOpen: Bool) -> Void] {
        defer { items.removeAll { if case .run = $0 { true } else { false } } }
        return items.compactMap { if case .run(let body) = $0 { body } else { nil } }
    }
}

extension CommitQueue.State {
    /// Whether what storage has answered has to be settled before anything is committed.
    var isHeldUp: Bool { isHalted || work.awaitsSettling && !finished.isEmpty }

    /// Whether there is something for the commit thread to do.
    var hasWork: Bool {
        work.hasUrgent || !isHeldUp && (queued != nil || !work.isEmpty)
    }

    /// Whether the commit thread is to be signalled; it was parked, then.
    ///
    /// Not while a writer commits, who sees to it afterwards.
    mutating func wakes() -> Bool {
        guard wakingCount != nil, committer != .writer, hasWork else { return false }
        wakingCount = nil
        return true
    }

    /// What to do if there is nothing to do.
    var idleness: CommitQueue.Step {
        guard let time = work.reservationTime else { return .wait(nanoseconds: nil) }
        return .rest(nanoseconds: max(1, time - clinux_monotonic_nanoseconds()))
    }
}
