import CLinux
import Glibc
import StateSystem
import Synchronization

extension CommitQueue {
    /// What the commit thread does until the end.
    func run() {
        // When a sync ends, who answers readers goes on first: with 20 % SETs from 50 clients on 2 cores, the reads' p99
        // was 220 µs where this thread interrupted it, 130 µs where it does not, and a sixth more requests were served.
        clinux_schedule_as_batch()
        var pace = Pace()
        var raising = CeilingPatience()
        var compaction = Compaction()
        answer(compacting?.shortage)
        while let work = take(pace, compaction) {
            switch work {
            case .reopen(let revision): reopen(after: revision, &compaction)
            case .maintain:
                backing.maintain()
                lookForCompaction(&compaction)
            case .tell: state.withLock { $0.notify }()
            case .look: adoptEdits()
            case .exchangeFiles(let exchange): exchange(true)
            case .raise: raiseCeilingNow(&raising)
            case .compact: compactWhileIdle(&compaction)
            case .batch(let batch, let isForThread):
                let start = clinux_monotonic_nanoseconds()
                let count = batch.transactionCount
                let finished = commit(batch)
                // Order matters: the replies go before the checkpoint.
                let waiting = answer(finished)
                switch finished {
                case .committed:
                    let end = clinux_monotonic_nanoseconds()
                    pace = Pace(after: count, waiting: waiting, took: end - start, at: end)
                    backing.maintain()
                    compactBetweenCommits(&compaction, after: end - start)
                    if isForThread, pace.expectedCount == 1 { awaitNext() }
                case .failed(_, let error): if !error.isOutcomeUnknown { backing.maintain() }
                case .edited, .reopened, .unopened, .raised, .compacted, .room: break
                }
            }
            answer(compacting?.shortage)
        }
        endCompaction(&compaction)
        endExchanges()
    }

    /// At the end nobody may be left waiting, also where commits had come to a halt.
    private func endExchanges() {
        let exchanges = state.withLock { state in
            defer { state.fileExchanges = [] }
            return state.fileExchanges
        }
        for exchange in exchanges { exchange(false) }
    }

    private func adoptEdits() {
        let changes = editable?.takeOutsideChanges() ?? []
        if !changes.isEmpty { _ = answer(.edited(nil, changes)) }
        guard let files = files.withLock({ $0 }) else { return }
        files.look()
        // Who waits for edits to be known goes on.
        state.withLock { $0.notify }()
    }

    /// Opens the store anew, after 0.1 s, 0.2 s and so on up to 10 s where it cannot be, until it is or the end has come.
    func reopen(after revision: Int64, _ compaction: inout Compaction) {
        var pause: Int64 = 100_000_000
        while true {
            var adopted: [AdoptedChange] = []
            do {
                try backing.reopen(after: revision) { adopted.append(AdoptedChange($0)) }
                let notes = (backing as? any NoteBacking)?.takeNotes()
                try settleFiles(adopted)
                _ = answer(.reopened(adopted, notes: notes))
                return
            } catch {
                let error = error as? StateError ?? StateError(.storage, "\(error)")
                _ = answer(.unopened(error))
                refuseRequests(&compaction, error)
            }
            guard sleep(nanoseconds: pause) else { return }
            pause = min(pause * 2, 10_000_000_000)
        }
    }

    /// The store may hold what its last commit staged, and its mark says of which files.
    private func settleFiles(_ adopted: [AdoptedChange]) throws {
        guard let files = files.withLock({ $0 }), let marks = backing as? any FileMarkBacking else {
            return
        }
        var values: [[UInt8]: [UInt8]?] = [:]
        for change in adopted { values[change.key] = .some(change.value) }
        let keyspace = files.keyspace.withLock { $0 }
        try files.settle(marks.takeFileMark()) { key in
            values[key.bytes] ?? keyspace?.entry(for: key)?.value
        }
    }

    /// Waits whatever is queued meanwhile.
    ///
    /// - Returns: False at the end.
    private func sleep(nanoseconds: Int64) -> Bool {
        let end = clinux_monotonic_nanoseconds() + nanoseconds
        while true {
            let rest = end - clinux_monotonic_nanoseconds()
            let isStopping = state.withLock { state in
                state.isParked = rest > 0
                return state.isStopping
            }
            guard !isStopping else { return false }
            guard rest > 0 else { return true }
            parking.wait(nanoseconds: rest)
        }
    }

    /// Stays awake a little while: to sleep and be woken takes longer than a lone writer takes for its next write.
    ///
    /// (Measured: of 100 µs from a SET to its reply, the two wake-ups between the threads took 25.)
    private func awaitNext() {
        let deadline = clinux_monotonic_nanoseconds() + 50_000
        while !hasQueued.load(ordering: .acquiring), clinux_monotonic_nanoseconds() < deadline {
            sched_yield()
        }
    }

    /// What there is for the commit thread to do.
    enum Work {
        case reopen(after: Int64)
        case maintain
        case tell
        case look
        case exchangeFiles(@Sendable (_ isOpen: Bool) -> Void)
        case raise
        case compact
        /// Whether somebody goes on without the answer, so that the next may come from there at once.
        case batch(CommitBatch, isForThread: Bool)
    }

    enum Taken {
        case work(Work)
        case wait(nanoseconds: Int64?)
        /// Nothing to do before then, and nothing that a writer could not do itself.
        case rest(nanoseconds: Int64)
        case end
    }

    /// The next thing to do; nil at the end.
    private func take(_ pace: Pace, _ compaction: Compaction) -> Work? {
        while true {
            let idleness = idleness(compaction)
            switch state.withLock({ take(pace, idleness, &$0) }) {
            case .work(let work): return work
            case .end: return nil
            case .wait(let nanoseconds):
                waits.store(nanoseconds == nil, ordering: .relaxed)
                parking.wait(nanoseconds: nanoseconds)
                waits.store(false, ordering: .relaxed)
            case .rest(let nanoseconds):
                waits.store(true, ordering: .relaxed)
                parking.wait(nanoseconds: nanoseconds)
                waits.store(false, ordering: .relaxed)
            }
        }
    }

    private func take(_ pace: Pace, _ idleness: Taken, _ state: inout State) -> Taken {
        state.isParked = true
        state.wakingCount = 1
        if state.committer == .writer {
            return compacting == nil ? .wait(nanoseconds: nil) : .rest(nanoseconds: 1_000_000_000)
        }
        let taken = takeNext(pace, idleness, &state)
        switch taken {
        case .work: (state.committer, state.isParked) = (.thread, false)
        case .wait(let nanoseconds): state.committer = nanoseconds == nil ? .nobody : .thread
        case .rest, .end: state.committer = .nobody
        }
        return taken
    }

    private func takeNext(_ pace: Pace, _ idleness: Taken, _ state: inout State) -> Taken {
        if state.reopens {
            state.reopens = false
            return .work(.reopen(after: state.storedRevision))
        }
        if state.maintains {
            state.maintains = false
            return .work(.maintain)
        }
        if state.tells {
            state.tells = false
            return .work(.tell)
        }
        if state.isRaiseDue {
            state.raisesAt = nil
            return .work(.raise)
        }
        // At the end nobody may be left to resume: what is queued is undone with the rest.
        if state.isHalted { return state.isStopping ? .end : state.idleness }
        if state.awaitsSettling { return state.idleness }
        if !state.fileExchanges.isEmpty, !state.isStopping {
            return .work(.exchangeFiles(state.fileExchanges.removeFirst()))
        }
        if state.looksOutside, !state.isStopping {
            state.looksOutside = false
            return .work(.look)
        }
        guard let queued = state.queued else {
            if state.isStopping { return .end }
            if !state.compactions.isEmpty { return .work(.compact) }
            return state.raisesAt == nil ? idleness : state.idleness
        }
        let rest = pace.until - clinux_monotonic_nanoseconds()
        if queued.transactionCount < pace.expectedCount, rest > 0, !state.isStopping {
            state.wakingCount = pace.expectedCount
            return .wait(nanoseconds: rest)
        }
        let isForThread = state.isForThread
        guard let batch = take(&state, for: .thread) else { return .wait(nanoseconds: nil) }
        return .work(.batch(batch, isForThread: isForThread))
    }
}
