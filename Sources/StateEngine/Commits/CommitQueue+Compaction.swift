import CLinux
import StateSystem
import Synchronization

/// Compaction, which the commit thread does: at once while it has nothing else to do, and else a piece after a commit once so much
/// has gathered that the store would grow.
extension CommitQueue {
    /// What the commit thread knows of it.
    struct Compaction {
        /// Asked for and not answered.
        fileprivate var requests: [CompactionRequest] = []
        /// What there was to do when the thread last had the backing.
        fileprivate var need = CompactionNeed()
        /// When it looks again though nothing was committed: changes grow old.
        fileprivate var lookAt: Int64 = 0
        /// After a failure nothing is tried before, unless somebody asks for it.
        fileprivate var retryAt: Int64 = 0
        fileprivate var pause: Int64 = 0

        init() {}
    }

    /// What to do where nothing is queued; the backing may be in use by a writer.
    func idleness(_ compaction: Compaction) -> Step {
        guard capabilities.compaction != nil else { return .wait(nanoseconds: nil) }
        let now = clinux_monotonic_nanoseconds()
        if isAsked(compaction) { return .turn(.compact) }
        let time = compaction.need.isWorthwhile ? compaction.retryAt : compaction.lookAt
        return now >= time ? .turn(.compact) : .rest(nanoseconds: time - now)
    }

    private func isAsked(_ compaction: Compaction) -> Bool {
        !compaction.requests.isEmpty || state.withLock { $0.work.asksForCompaction }
    }

    /// Finds out what there is to do, while the backing is this thread's.
    ///
    /// What is too little for a piece of its own is done where nothing has come for a second.
    func lookForCompaction(_ compaction: inout Compaction) {
        guard let compacting = capabilities.compaction else { return }
        compaction.need = compacting.compactionNeed
        let isSoon = compaction.need.isAny || compacting.shortage != nil
        let pause: Int64 = isSoon ? 1_000_000_000 : 10_000_000_000
        compaction.lookAt = max(clinux_monotonic_nanoseconds() + pause, compaction.retryAt)
    }

    /// A piece while there is nothing to commit: it ends when something comes.
    func compactWhileIdle(_ compaction: inout Compaction) {
        capabilities.compaction?.lookForRoom()
        lookForCompaction(&compaction)
        guard compaction.need.isAny || isAsked(compaction) else { return }
        let start = clinux_monotonic_nanoseconds()
        compact(&compaction) {
            let time = clinux_monotonic_nanoseconds() - start
            return time < 500_000 || time < 5_000_000 && !hasQueued.load(ordering: .relaxed)
        }
        lookForCompaction(&compaction)
    }

    /// A piece after a commit that took so long, where enough has gathered.
    ///
    /// As long as the commit, so that compaction takes half of the time at most; four times where it lags far behind.
    func compactBetweenCommits(_ compaction: inout Compaction, after duration: Int64) {
        lookForCompaction(&compaction)
        let start = clinux_monotonic_nanoseconds()
        guard isAsked(compaction) || compaction.need.isDue && start >= compaction.retryAt else {
            return
        }
        let share = compaction.need.isUrgent ? duration * 4 : duration
        let limit = min(max(share, 500_000), 5_000_000)
        compact(&compaction) { clinux_monotonic_nanoseconds() - start < limit }
        lookForCompaction(&compaction)
    }

    private func compact(_ compaction: inout Compaction, while goesOn: () -> Bool) {
        guard let compacting = capabilities.compaction else { return }
        takeRequests(&compaction)
        do throws(StateError) {
            let step = try compacting.compact(while: goesOn)
            compaction.pause = 0
            _ = answer(.compacted(step, []))
            if step.isDone { try finish(&compaction, compacting, at: step.compacted) }
        } catch {
            fail(&compaction, error)
        }
        backing.maintain()
    }

    private func takeRequests(_ compaction: inout Compaction) {
        let requests = state.withLock { $0.work.takeCompactions() }
        for request in requests {
            if let revision = request.revision {
                capabilities.compaction?.raiseCompaction(to: revision)
            }
        }
        compaction.requests += requests
    }

    /// Answers who asked, for nothing is left to do.
    private func finish(
        _ compaction: inout Compaction,
        _ compacting: any CompactingBacking,
        at compacted: Int64
    ) throws(StateError) {
        guard !compaction.requests.isEmpty else { return }
        try compacting.syncCompaction()
        let shrinks = compaction.requests.contains(where: \.shrinks)
        let freedByteCount = shrinks ? try compacting.shrink() : 0
        let answers = compaction.requests.map { request in
            let reply = CompactionReply(
                compacted: compacted,
                freedByteCount: request.shrinks ? freedByteCount : nil
            )
            return CompactionAnswer(result: .success(reply), completion: request.completion)
        }
        compaction.requests = []
        _ = answer(.compacted(nil, answers))
    }

    /// Who asked is told; it is tried again after 1 s, 2 s and so on up to a minute.
    private func fail(_ compaction: inout Compaction, _ error: StateError) {
        compaction.pause = min(max(compaction.pause * 2, 1_000_000_000), 60_000_000_000)
        compaction.retryAt = clinux_monotonic_nanoseconds() + compaction.pause
        answerRequests(&compaction, error)
        guard error.isOutcomeUnknown else { return }
        // No acknowledged commit is in doubt, but nothing may be written before the store was checked.
        reopen(&compaction)
    }

    /// The store cannot be opened: who asks need not wait until it can.
    func refuseRequests(_ compaction: inout Compaction, _ error: StateError) {
        takeRequests(&compaction)
        answerRequests(&compaction, error)
    }

    private func answerRequests(_ compaction: inout Compaction, _ error: StateError) {
        let answers = compaction.requests.map {
            CompactionAnswer(result: .failure(error), completion: $0.completion)
        }
        compaction.requests = []
        if !answers.isEmpty { _ = answer(.compacted(nil, answers)) }
    }

    /// At the end nobody may be left waiting.
    func endCompaction(_ compaction: inout Compaction) {
        takeRequests(&compaction)
        answerRequests(
            &compaction,
            StateError(.readOnly, "the keyspace is closed: nothing more was compacted")
        )
    }
}

/// What somebody who asked for a compaction is told.
struct CompactionAnswer: Sendable {
    var result: Result<CompactionReply, StateError>
    var completion: @Sendable (Result<CompactionReply, StateError>) -> Void
}
