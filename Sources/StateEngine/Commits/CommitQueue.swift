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
        /// The store is open again; it holds these commits beyond what was told, and these notes, where it keeps any.
        case reopened([AdoptedChange], notes: [String: String]?)
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
        var queued: CommitBatch?
        /// Whether a writer that goes on without its answer is in it: nobody but the commit thread may come for it.
        var isForThread = false
        var finished: [Finished] = []
        /// Empty batches, to be filled again.
        var spare: [CommitBatch] = []
        var committer = Committer.nobody
        /// Up to here everything is on stable storage.
        var storedRevision: Int64
        var isParked = false
        /// How many transactions wake a commit thread that is parked.
        var wakingCount = 1
        var isHalted = false
        /// Whether others may have changed the store.
        var looksOutside = false
        /// Whether the store has to be opened anew.
        var reopens = false
        /// Whether the backing has something to do that takes its time.
        var maintains = false
        var ceiling: RevisionCeiling?
        /// When the ceiling of the revisions is to be raised, on the monotonic clock; nil where it need not be.
        var raisesAt: Int64?
        /// Whether there is something to tell that nobody is about.
        var tells = false
        /// Has the directories of keys that live in files exchanged, or is told that the end has come.
        var fileExchanges: [@Sendable (_ isOpen: Bool) -> Void] = []
        /// Asked for and not begun.
        var compactions: [CompactionRequest] = []
        var isStopping = false
        var notify: @Sendable () -> Void = {}

        init(storedRevision: Int64, ceiling: RevisionCeiling?) {
            self.storedRevision = storedRevision
            self.ceiling = ceiling
        }

        /// Whether there is something for the commit thread to do.
        var hasWork: Bool {
            let isReady =
                queued != nil || looksOutside || !compactions.isEmpty || !fileExchanges.isEmpty
            let isAskedFor = reopens || maintains || tells || raisesAt != nil
            return isAskedFor || isStopping || isReady && !isHalted && !awaitsSettling
        }

        /// Whether directories are to be exchanged and what storage has answered is not settled.
        ///
        /// Nothing is committed until it is: who compares files with entries has to see what is stored.
        var awaitsSettling: Bool { !fileExchanges.isEmpty && !finished.isEmpty && !isStopping }

        /// Whether the commit thread is to be signalled; it was parked, then.
        ///
        /// Not while a writer commits, who sees to it afterwards.
        mutating func wakes() -> Bool {
            guard isParked, committer != .writer, hasWork else { return false }
            isParked = false
            return true
        }
    }

    let backing: any Backing
    let editable: (any EditableBacking)?
    let compacting: (any CompactingBacking)?
    /// The directories of the keys that live in files, where some do.
    let files = StateLock<FileContainers?>(nil)
    let state: StateLock<State>
    let parking = BlockingSemaphore()
    /// Whether `state.queued` holds something: what a commit thread that does not sleep yet looks at.
    let hasQueued = Atomic(false)
    /// Whether `state.compactions` holds something.
    let asksForCompaction = Atomic(false)
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
    ///   - ceiling: What revisions may not go beyond, where it has to be raised.
    init(backing: any Backing, revision: Int64, ceiling: RevisionCeiling? = nil) {
        self.backing = backing
        editable = backing as? any EditableBacking
        compacting = backing as? any CompactingBacking
        state = StateLock(State(storedRevision: revision, ceiling: ceiling))
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
    ///   - lendsThread: Whether the caller calls ``commitHere()`` next: a commit thread that has nothing to do is not woken
    ///     for it.
    func submit(_ batch: CommitBatch, lendsThread: Bool) {
        let wakes = state.withLock { state in
            let queued = state.queued ?? state.spare.popLast() ?? CommitBatch()
            queued.take(batch)
            state.queued = queued
            if !lendsThread { state.isForThread = true }
            let isEnough = queued.transactionCount >= state.wakingCount
            return isEnough && (state.committer == .thread || !lendsThread) && state.wakes()
        }
        hasQueued.store(true, ordering: .releasing)
        if wakes { parking.signal() }
    }

    /// Commits what is queued on this thread, where nobody else is at it; else returns at once.
    ///
    /// Whoever calls this waits for what it submitted: here it is answered, or the commit thread has it.
    func commitHere() {
        let batch = state.withLock { state -> CommitBatch? in
            guard state.committer == .nobody, !state.isHalted, !state.reopens, !state.maintains,
                !state.looksOutside, state.fileExchanges.isEmpty, !state.isStopping
            else { return nil }
            return take(&state, for: .writer)
        }
        guard let batch else { return }
        let finished = commit(batch)
        let maintains = backing.needsMaintenance
        let shortage = compacting?.shortage
        // Order matters: the next commit begins, then the answers go, then comes the checkpoint.
        _ = answer(finished)
        answer(shortage)
        if maintains { wakeThread { $0.maintains = true } }
    }

    /// What storage has answered since the last call, in order.
    func takeFinished() -> [Finished] {
        let (finished, wakes) = state.withLock { state -> ([Finished], Bool) in
            guard !state.finished.isEmpty else { return ([], false) }
            let finished = state.finished
            state.finished = []
            return (finished, !state.fileExchanges.isEmpty && state.wakes())
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

    /// Everything that stood on a failed commit is undone: what comes from now on may be committed.
    func resume() { wakeThread { $0.isHalted = false } }

    /// Others may have changed the store: the commit thread looks.
    func lookOutside() { wakeThread { $0.looksOutside = true } }

    /// From now on revisions have a ceiling.
    func bound(by ceiling: RevisionCeiling) { state.withLock { $0.ceiling = ceiling } }

    /// Has the commit thread exchange the directories of keys that live in files, once all that storage has answered is settled.
    ///
    /// - Parameter exchange: Called once, with false where the end comes before.
    /// - Returns: Whether it will be; it is not at the end.
    func requestFiles(_ exchange: @escaping @Sendable (_ isOpen: Bool) -> Void) -> Bool {
        let (isTaken, wakes) = state.withLock { state in
            guard !state.isStopping else { return (false, false) }
            state.fileExchanges.append(exchange)
            return (true, state.wakes())
        }
        if wakes { parking.signal() }
        return isTaken
    }

    /// The block of revisions is half used: the commit thread begins the next.
    func raiseCeiling() { wakeThread { $0.raisesAt = 0 } }

    /// Has the commit thread notify once more.
    ///
    /// - Returns: Whether it will; it does not at the end.
    func notifyLater() -> Bool {
        let (isTaken, wakes) = state.withLock { state in
            guard !state.isStopping else { return (false, false) }
            state.tells = true
            return (true, state.wakes())
        }
        if wakes { parking.signal() }
        return isTaken
    }

    /// Gives an answered batch back, to be filled again.
    func recycle(_ batch: CommitBatch) {
        batch.removeAll()
        state.withLock { if $0.spare.count < 4 { $0.spare.append(batch) } }
    }

    /// Commits what is queued, unless a commit fails, and ends the thread.
    func stop() {
        wakeThread { $0.isStopping = true }
        thread.join()
    }

    func wakeThread(_ change: (inout State) -> Void) {
        let wakes = state.withLock { state in
            change(&state)
            return state.wakes()
        }
        if wakes { parking.signal() }
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
            return .edited(batch, editable?.takeOutsideChanges() ?? [])
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
                state.reopens = error.isOutcomeUnknown
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
