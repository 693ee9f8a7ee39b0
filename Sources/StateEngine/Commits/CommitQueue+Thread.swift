import CLinux
import Glibc
import StateSystem
import Synchronization

extension CommitQueue {
    /// The commit thread's loop, until the end.
    func run() {
        // When a sync ends, the threads that answer readers run first. With 20 % SETs from 50
        // clients on 2 cores, the reads' p99 was 220 µs if this thread interrupted them, 130 µs
        // if not, and a sixth more requests were served.
        clinux_schedule_as_batch()
        var pace = Pace()
        var raising = ReservationPatience()
        var compaction = Compaction()
        answer(capabilities.compaction?.shortage)
        while let turn = take(pace, compaction) {
            switch turn {
            case .work(let work): perform(work, &raising, &compaction)
            case .compact: compactWhileIdle(&compaction)
            case .commit(let batch, let isForThread):
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
            answer(capabilities.compaction?.shortage)
        }
        endCompaction(&compaction)
        // Nobody may be left waiting, even if commits had stopped.
        for body in state.withLock({ $0.work.takeRuns() }) { body(false) }
    }

    private func perform(
        _ work: CommitWork,
        _ raising: inout ReservationPatience,
        _ compaction: inout Compaction
    ) {
        switch work {
        case .reopen: reopen(&compaction)
        case .maintain:
            backing.maintain()
            lookForCompaction(&compaction)
        case .notify: state.withLock { $0.notify }()
        case .reserve: reserveRevisionsNow(&raising)
        case .run(let body): body(true)
        case .look: adoptEdits()
        case .compact, .stop: break
        }
    }

    private func adoptEdits() {
        let changes = capabilities.editing?.takeOutsideChanges() ?? []
        if !changes.isEmpty { _ = answer(.edited(nil, changes)) }
        guard let files = files.withLock({ $0 }) else { return }
        files.look()
        // Threads that wait until edits are adopted continue.
        state.withLock { $0.notify }()
    }

    /// Reopens the store, after pauses of 0.1 s, 0.2 s and so on up to 10 s while it fails, until
    /// it succeeds or the queue stops.
    func reopen(_ compaction: inout Compaction) {
        let revision = state.withLock { $0.storedRevision }
        var pause: Int64 = 100_000_000
        while true {
            var adopted: [AdoptedChange] = []
            do {
                let metadata = try backing.reopen(after: revision) {
                    adopted.append(AdoptedChange($0))
                }
                try settleFiles(adopted)
                _ = answer(.reopened(adopted, metadata: metadata))
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

    /// The store may hold what its last commit staged; its list of pending files names the files.
    private func settleFiles(_ adopted: [AdoptedChange]) throws {
        guard let files = files.withLock({ $0 }), let store = capabilities.files else { return }
        var values: [[UInt8]: [UInt8]?] = [:]
        for change in adopted { values[change.key] = .some(change.value) }
        let keyspace = files.keyspace.withLock { $0 }
        try files.settle(store.takePendingFileList()) { key in
            values[key.bytes] ?? keyspace?.entry(for: key)?.value
        }
    }

    /// Waits, whatever is queued meanwhile.
    ///
    /// - Returns: False if the queue is stopping.
    private func sleep(nanoseconds: Int64) -> Bool {
        let end = clinux_monotonic_nanoseconds() + nanoseconds
        while true {
            let rest = end - clinux_monotonic_nanoseconds()
            let isStopping = state.withLock { state in
                state.wakingCount = rest > 0 ? 1 : nil
                return state.work.isStopping
            }
            guard !isStopping else { return false }
            guard rest > 0 else { return true }
            parking.wait(nanoseconds: rest)
        }
    }

    /// Stays awake a little while: sleeping and being woken takes longer than a single writer takes
    /// for its next write.
    ///
    /// (Measured: the two wake-ups between the threads took 25 of the 100 µs from a SET to its
    /// reply.)
    private func awaitNext() {
        let deadline = clinux_monotonic_nanoseconds() + 50_000
        while !hasQueued.load(ordering: .acquiring), clinux_monotonic_nanoseconds() < deadline {
            sched_yield()
        }
    }

    /// What the commit thread does next.
    enum Turn {
        case work(CommitWork)
        case compact
        /// `isForThread`: whether some writer continues without its answer, so that it may submit
        /// the next write at once.
        case commit(CommitBatch, isForThread: Bool)
    }

    enum Step {
        case turn(Turn)
        case wait(nanoseconds: Int64?)
        /// Nothing to do before then, and nothing that a writer could not do itself.
        case rest(nanoseconds: Int64)
        case end
    }

    /// The next thing to do; nil at the end.
    private func take(_ pace: Pace, _ compaction: Compaction) -> Turn? {
        while true {
            let idleness = idleness(compaction)
            switch state.withLock({ take(pace, idleness, &$0) }) {
            case .turn(let turn): return turn
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

    private func take(_ pace: Pace, _ idleness: Step, _ state: inout State) -> Step {
        state.wakingCount = 1
        if state.committer == .writer {
            return capabilities.compaction == nil
                ? .wait(nanoseconds: nil) : .rest(nanoseconds: 1_000_000_000)
        }
        let step = next(pace, idleness, &state)
        switch step {
        case .turn: (state.committer, state.wakingCount) = (.thread, nil)
        case .wait(let nanoseconds): state.committer = nanoseconds == nil ? .nobody : .thread
        case .rest, .end: state.committer = .nobody
        }
        return step
    }

    private func next(_ pace: Pace, _ idleness: Step, _ state: inout State) -> Step {
        if let work = state.work.take(isHeldUp: state.isHeldUp) { return .turn(.work(work)) }
        let isStopping = state.work.isStopping
        // At the end nobody may be left to resume: what is queued is undone with the rest.
        if state.isHeldUp { return isStopping ? .end : state.idleness }
        guard let queued = state.queued else {
            if isStopping { return .end }
            if state.work.asksForCompaction { return .turn(.compact) }
            return state.work.reservationTime == nil ? idleness : state.idleness
        }
        let rest = pace.until - clinux_monotonic_nanoseconds()
        if queued.transactionCount < pace.expectedCount, rest > 0, !isStopping {
            state.wakingCount = pace.expectedCount
            return .wait(nanoseconds: rest)
        }
        let isForThread = state.isForThread
        guard let batch = take(&state, for: .thread) else { return .wait(nanoseconds: nil) }
        return .turn(.commit(batch, isForThread: isForThread))
    }
}

extension CommitQueue {
    /// How many transactions the next commit may expect, and until when it waits for them.
    ///
    /// If the sync is slow, a short wait for writers that were just answered pays off. Otherwise
    /// they fall into two groups that take turns, and each group waits for two syncs. If a commit
    /// is mostly work, the two groups keep both threads busy: one group of 800 took 237,000 SETs a
    /// second, while the loop and the commit together allow 400,000.
    struct Pace {
        var expectedCount = 0
        var until: Int64 = 0

        init() {}

        init(after count: Int, waiting: Int, took duration: Int64, at end: Int64) {
            expectedCount = count + waiting
            let isMostlySync = duration > Int64(count) * 10_000
            if isMostlySync { until = end + min(duration, 4_000_000) / 4 }
        }
    }
}
