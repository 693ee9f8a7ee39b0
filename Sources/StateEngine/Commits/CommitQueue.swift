import CLinux
import Glibc
import StateSystem
import Synchronization

/// The commit thread: takes everything that queued up while the last commit ran, and commits it as one (group commit).
///
/// One thread at a time uses the backing. Where the commit thread has nothing to do, a writer that waits for its answer
/// commits itself what is queued: to wake the commit thread and to be woken by it takes half as long again as a sync. What
/// has come meanwhile, and all that is no commit (the store is opened anew, checkpoints, edits), is the commit thread's.
///
/// After a commit that failed nothing more is taken until ``resume()``: what is queued was computed on it. After one whose
/// outcome is unknown the store is opened anew first, however often that has to be tried.
final class CommitQueue: Sendable {
    /// What storage has answered.
    enum Finished {
        /// The batch is durable.
        case committed(CommitBatch)
        /// It is not, or nobody knows.
        case failed(CommitBatch, StateError)
        /// Others have changed the store; nothing of the batch, where there is one, was committed.
        case edited(CommitBatch?, [OutsideChange])
        /// The store is open again; it holds these commits beyond what was reported, and this metadata.
        case reopened([AdoptedChange], metadata: [String: String])
        /// It could not be opened; it is tried again.
        case unopened(StateError)
        /// Revisions up to this one may be told.
        case raised(Int64)
        /// A piece of the history was compacted, or could not be; and what is told to who asked for it.
        case compacted(CompactionStep?, [CompactionAnswer])
        /// The disk is too full for more than deletes, or is not any more.
        case room(shortage: StateError?)
    }

    /// Who uses the backing.
    enum Committer {
        case nobody
        case thread
        /// A writer that waits for its answer.
        case writer
    }

    struct State {
        var work = CommitWorkList()
        var queued: CommitBatch?
        /// Whether a writer that goes on without its answer is in it: nobody but the commit thread may come for it.
        var isForThread = false
        var finished: [Finished] = []
        /// Empty batches, to be filled again.
        var spare: [CommitBatch] = []
        var committer = Committer.nobody
        /// Up to here everything is on stable storage.
        var storedRevision: Int64
        /// How many queued transactions wake the commit thread; nil if it is awake.
        var wakingCount: Int?
        /// Whether what stood on a failed commit is not undone yet.
        var isHalted = false
        var reservation: RevisionReservation?
        var notify: @Sendable () -> Void = {}

        init(storedRevision: Int64, reservation: RevisionReservation?) {
            self.storedRevision = storedRevision
            self.reservation = reservation
        }
    }

    let backing: any Backing
    let capabilities: BackingCapabilities
    /// The directories of the keys that live in files, where some do.
    let files = StateLock<FileContainers?>(nil)
    let state: StateLock<State>
    let parking = BlockingSemaphore()
    /// Whether `state.queued` holds something: what a commit thread that does not sleep yet looks at.
    let hasQueued = Atomic(false)
    /// Whether what was answered last of the room on the disk is that there is too little.
    private let isShort = Atomic(false)
    /// Whether the commit thread waits for something to commit.
    let waits = Atomic(false)
    private let thread: WorkerThread

    /// Makes a queue whose thread is not started yet.
    ///
    /// - Parameters:
    ///   - backing: Where commits go; it is loaded.
    ///   - revision: What it was loaded at.
    init(backing: any Backing, revision: Int64) {
        self.backing = backing
        capabilities = backing.capabilities
        state = StateLock(State(storedRevision: revision, reservation: capabilities.reservation))
        thread = WorkerThread(name: "commit")
    }

    func start() { thread.start { self.run() } }

    // MARK: The keyspace's side

    /// Whether the caller is the commit thread.
    var isOnItsThread: Bool { thread.isCurrent }

    /// Whether the commit thread has nothing to do.
    var isIdle: Bool { waits.load(ordering: .relaxed) }

    /// What is called after each answer of the storage, by who has committed.
    func setNotify(_ notify: @escaping @Sendable () -> Void) {
        state.withLock { $0.notify = notify }
    }

    /// Hands finished transactions over, and leaves `batch` empty.
    ///
    /// - Parameters:
    ///   - batch: At least one of them.
    ///   - commitsOnCaller: Whether the caller calls ``commitHere()`` next: a commit thread that has nothing to do is not woken
    ///     for it.
    func submit(_ batch: CommitBatch, commitsOnCaller: Bool) {
        let wakes = state.withLock { state in
            let queued = state.queued ?? state.spare.popLast() ?? CommitBatch()
            queued.take(batch)
            state.queued = queued
            if !commitsOnCaller { state.isForThread = true }
            let isEnough = queued.transactionCount >= state.wakingCount ?? .max
            return isEnough && (state.committer == .thread || !commitsOnCaller) && state.wakes()
        }
        hasQueued.store(true, ordering: .releasing)
        if wakes { parking.signal() }
    }

    /// Commits what is queued on this thread, where nobody else is at it; else returns at once.
    ///
    /// Whoever calls this waits for what it submitted: here it is answered, or the commit thread has it.
    func commitHere() {
        let batch = state.withLock { state -> CommitBatch? in
            guard state.committer == .nobody, !state.isHalted, state.work.letsWritersCommit else {
                return nil
            }
            return take(&state, for: .writer)
        }
        guard let batch else { return }
        let finished = commit(batch)
        let maintains = backing.needsMaintenance
        let shortage = capabilities.compaction?.shortage
        // Order matters: the next commit begins, then the answers go, then comes the checkpoint.
        _ = answer(finished)
        answer(shortage)
        if maintains { submit(.maintain) }
    }

    /// What storage has answered since the last call, in order.
    func takeFinished() -> [Finished] {
        let (finished, wakes) = state.withLock { state -> ([Finished], Bool) in
            guard !state.finished.isEmpty else { return ([], false) }
            let finished = state.finished
            state.finished = []
            return (finished, state.work.awaitsSettling && state.wakes())
        }
        if wakes { parking.signal() }
        return finished
    }

    /// The first transaction that no commit has taken and that would be undone with it.
    var firstUndoneRevision: Int64? { state.withLock { $0.queued?.firstUndoneRevision } }

    /// What no commit has taken yet.
    func takeQueued() -> CommitBatch? {
        state.withLock { state in
            let queued = state.queued
            state.queued = nil
            hasQueued.store(false, ordering: .relaxed)
            return queued
        }
    }

    /// Has the commit thread do something.
    ///
    /// - Returns: Whether it will: at the end nobody may wait for it.
    @discardableResult
    func submit(_ work: CommitWork) -> Bool {
        let (isTaken, wakes) = state.withLock { state in
            let isTaken = state.work.submit(work)
            return (isTaken, state.wakes())
        }
        if wakes { parking.signal() }
        return isTaken
    }

    /// Everything that stood on a failed commit is undone: what comes from now on may be committed.
    func resume() {
        let wakes = state.withLock { state in
            state.isHalted = false
            return state.wakes()
        }
        if wakes { parking.signal() }
    }

    /// From now on revisions have a reservation.
    func bound(by reservation: RevisionReservation) {
        state.withLock { $0.reservation = reservation }
    }

    /// Gives an answered batch back, to be filled again.
    func recycle(_ batch: CommitBatch) {
        batch.removeAll()
        state.withLock { if $0.spare.count < 4 { $0.spare.append(batch) } }
    }

    /// Commits what is queued, unless a commit fails, and ends the thread.
    func stop() {
        submit(.stop)
        thread.join()
    }

    // MARK: Who commits

    /// Takes what is queued, and with it the backing.
    func take(_ state: inout State, for committer: Committer) -> CommitBatch? {
        guard let batch = state.queued else { return nil }
        state.queued = nil
        state.isForThread = false
        state.committer = committer
        hasQueued.store(false, ordering: .relaxed)
        return batch
    }

    /// Has storage commit a batch.
    func commit(_ batch: CommitBatch) -> Finished {
        let files = files.withLock { $0 }
        do {
            try store(batch, files)
            return .committed(batch)
        } catch is EditedMeanwhile {
            return .edited(batch, capabilities.editing?.takeOutsideChanges() ?? [])
        } catch {
            files?.undoAdoptions()
            let unknown = StateError(.readOnly, "\(StateError.unknownOutcome): \(error)")
            return .failed(batch, error as? StateError ?? unknown)
        }
    }

    private func store(_ batch: CommitBatch, _ files: FileContainers?) throws {
        guard let files, let staged = try files.stage(batch) else {
            return try backing.commit(batch)
        }
        // Order matters: new files beside their targets, the rows with the mark, then the files in their places.
        do {
            try backing.commit(batch)
        } catch {
            files.drop(staged)
            throw error
        }
        files.publish(staged)
    }

    /// Answers what there is of room on the disk, if that has changed; by who has the backing, or had it last.
    ///
    /// Costs a comparison, without the lock, if nothing has.
    func answer(_ shortage: StateError?) {
        let isNow = shortage != nil
        guard isShort.exchange(isNow, ordering: .relaxed) != isNow else { return }
        let notify = state.withLock { state in
            state.finished.append(.room(shortage: shortage))
            return state.notify
        }
        notify()
    }

    /// Hands an answer to whoever settles; a writer hands the backing back with it.
    ///
    /// - Returns: How many transactions wait for the next commit.
    func answer(_ finished: Finished) -> Int {
        let (notify, waiting, wakes) = state.withLock { state in
            state.finished.append(finished)
            switch finished {
            case .committed(let batch):
                if let revision = batch.storedRevision { state.storedRevision = revision }
            case .failed(_, let error):
                state.isHalted = true
                if error.isOutcomeUnknown { _ = state.work.submit(.reopen) }
            // Else a commit of what was queued could be under way when it is refused.
            case .edited, .unopened: state.isHalted = true
            case .reopened(let adopted, _):
                // Else the next failure would have them adopted once more.
                if let last = adopted.last { state.storedRevision = last.revision }
            case .raised, .compacted, .room: break
            }
            if state.committer == .writer { state.committer = .nobody }
            return (state.notify, state.queued?.transactionCount ?? 0, state.wakes())
        }
        if wakes { parking.signal() }
        notify()
        return waiting
    }
}
