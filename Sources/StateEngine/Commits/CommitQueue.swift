import CLinux
import StatePlatform
import StateSystem
import Synchronization

/// The commit thread: takes everything that was queued while the last commit ran, and commits it at
/// once (group commit).
///
/// One thread at a time uses the backing. If the commit thread is idle, a writer that waits for its
/// answer commits on its own thread what is queued: waking the commit thread and being woken by it
/// takes half as long again as a sync. What arrives meanwhile, and everything that is not a commit
/// (reopening the store, edits), is left to the commit thread.
///
/// After a failed commit nothing more is taken until ``resume()``, because what is queued was
/// computed on top of it. After a commit whose outcome is unknown the store is reopened first,
/// however often that has to be tried.
final class CommitQueue: Sendable {
    /// What storage answered.
    enum Finished {
        /// The batch is durable.
        case committed(CommitBatch)
        /// It is not durable, or its outcome is unknown.
        case failed(CommitBatch, StateError)
        /// Others have changed the store; nothing of the batch, if there is one, was committed.
        case edited(CommitBatch?, [OutsideChange])
        /// The store is open again, with these commits beyond those reported, and this metadata.
        case reopened([AdoptedChange], metadata: [String: String?])
        /// The store could not be opened; it is tried again.
        case unopened(StateError)
        /// Revisions up to this one may be published.
        case raised(Int64)
        /// A piece of the history was compacted, or could not be; with answers to the requests.
        case compacted(CompactionStep?, [CompactionAnswer])
        /// The disk is too full for anything but deletes, or has room again.
        case room(shortage: StateError?)
        /// Storage has all deferred changes up to this revision.
        case stored(through: Int64)
        /// Storage cannot have the deferred changes yet, or can again.
        case deferral(failure: StateError?)
    }

    /// Who uses the backing.
    enum Committer {
        case nobody
        case thread
        /// A writer that waits for its answer.
        case writer
    }

    struct Published: ~Copyable, Sendable {
        /// The last revision of it, and the last of those that storage is to have; 0: none.
        let added = Atomic<Int64>(0)
        let addedForStorage = Atomic<Int64>(0)
        /// The last revision that was submitted of which storage has something, or is to have it.
        let submitted: Atomic<Int64>
        /// Whether something was shown that is not kept, and storage may lack it still.
        let isShownOnly = Atomic(false)
        /// Whether what storage refused until the end is kept all the same.
        let isRestKept = Atomic(false)

        init(after revision: Int64) { submitted = Atomic(revision) }
    }

    struct State {
        var work = CommitWorkList()
        /// In order of revision; each is a commit of its own.
        var queued: [CommitBatch] = []
        var finished: [Finished] = []
        /// Empty batches, to be filled again.
        var spare: [CommitBatch] = []
        var committer = Committer.nobody
        var doing = Doing()
        /// Everything up to this revision is on stable storage.
        var storedRevision: Int64
        /// How many queued transactions wake the commit thread; nil if it is awake.
        var wakingCount: Int?
        /// Whether what was computed on a failed commit is not undone yet.
        var isHalted = false
        var reservation: RevisionReservation?
        /// Why the store is not open.
        var openingError: StateError?
        /// When deferred changes must be stored, in nanoseconds of the monotonic clock.
        var storeAt = Int64.max
        /// Those who wait until they are.
        var storeRequests: [@Sendable (StateError?) -> Void] = []
        /// Whether nobody may wait any more.
        var refusesToStore = false
        var notify: @Sendable () -> Void = {}

        init(storedRevision: Int64, reservation: RevisionReservation?) {
            self.storedRevision = storedRevision
            self.reservation = reservation
        }
    }

    let backing: any Backing
    let capabilities: BackingCapabilities
    /// The directories of the keys that live in files; nil if none do.
    let files = StateLock<FileContainers?>(nil)
    let state: StateLock<State>
    /// What storage may have later; only the thread that has the backing uses it.
    let deferred = DeferredChanges()
    /// What is known of it without the backing: how many changes, and their bytes.
    let deferredCount = Atomic(0)
    let deferredByteCount = Atomic(0)
    /// What may be published before storage has it.
    let published: Published
    /// How many bytes of keys and values may be deferred.
    let deferredByteLimit = Atomic(CommitQueue.standardDeferredByteLimit)
    let parking = BlockingSemaphore()
    /// Whether `state.queued` holds something; for compaction, which does not take the lock.
    let hasQueued = Atomic(false)
    /// Whether the last answer about the disk was that it has too little room.
    private let isShort = Atomic(false)
    /// Whether the commit thread waits for something to commit.
    let waits = Atomic(false)
    let thread: WorkerThread
    /// What the commit thread did.
    let meter = StateLock(CommitMeter())

    /// Makes a queue; its thread is not started yet.
    ///
    /// - Parameters:
    ///   - backing: Where commits go; it is loaded.
    ///   - revision: The revision at which it was loaded.
    init(backing: any Backing, revision: Int64) {
        self.backing = backing
        capabilities = backing.capabilities
        published = Published(after: revision)
        state = StateLock(State(storedRevision: revision, reservation: capabilities.reservation))
        thread = WorkerThread(name: "commit")
    }

    // MARK: The keyspace's side

    /// The newest revision that may be published before storage has it; 0 if there is none.
    var addedRevision: Int64 { published.added.load(ordering: .relaxed) }

    /// Whether the commit thread has nothing to do.
    var isIdle: Bool { waits.load(ordering: .relaxed) }

    /// Sets what is called after each answer of the storage, by the thread that committed.
    func setNotify(_ notify: @escaping @Sendable () -> Void) {
        state.withLock { $0.notify = notify }
    }

    /// Takes finished transactions over, and leaves `batch` empty.
    ///
    /// - Parameters:
    ///   - batch: At least one transaction.
    ///   - commitsOnCaller: If the caller calls ``commitHere()`` next, an idle thread is not woken.
    func submit(_ batch: CommitBatch, commitsOnCaller: Bool) {
        // Order matters: it is kept before storage has it.
        if batch.hasPublished { addPublished(of: batch) }
        if let stored = batch.storedRevision, stored > published.submitted.load(ordering: .relaxed)
        {
            published.submitted.store(stored, ordering: .relaxed)
        }
        let wakes = state.withLock { state in
            state.queue(batch)
            let isEnough = state.queuedCount >= state.wakingCount ?? .max
            return isEnough && (state.committer == .thread || !commitsOnCaller) && state.wakes()
        }
        hasQueued.store(true, ordering: .relaxed)
        if wakes { parking.signal() }
    }

    /// The answers of storage since the last call, in order.
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

    /// Submits work to the commit thread.
    ///
    /// - Returns: Whether it will be done: at the end nobody may wait for it.
    @discardableResult
    func submit(_ work: CommitWork) -> Bool {
        let (isTaken, wakes) = state.withLock { state in
            let isTaken = state.work.submit(work)
            return (isTaken, state.wakes())
        }
        if wakes { parking.signal() }
        return isTaken
    }

    /// Returns an answered batch, to be filled again.
    func recycle(_ batch: CommitBatch) {
        batch.removeAll()
        state.withLock { if $0.spare.count < 4 { $0.spare.append(batch) } }
    }

    // MARK: Who commits

    /// Takes the first batch that is queued, and with it the right to use the backing.
    func take(_ state: inout State, for committer: Committer) -> CommitBatch? {
        guard !state.queued.isEmpty else { return nil }
        state.committer = committer
        state.doing.begin()
        hasQueued.store(state.queued.count > 1, ordering: .relaxed)
        return state.queued.removeFirst()
    }

    /// Commits a batch to storage.
    func commit(_ batch: CommitBatch) -> Finished {
        if canDefer(batch) { return .committed(batch) }
        let files = files.withLock { $0 }
        do {
            try withDeferred(batch) { () throws in try store(batch, files) }
            return .committed(batch)
        } catch is EditedMeanwhile {
            return .edited(batch, capabilities.editing?.takeOutsideChanges() ?? [])
        } catch {
            files?.undoAdoptions()
            let unknown = StateError(.readOnly, "\(StateError.unknownOutcome): \(error)")
            let failure = error as? StateError ?? unknown
            return keepForLater(batch, after: failure) ? .committed(batch) : .failed(batch, failure)
        }
    }

    private func store(_ batch: CommitBatch, _ files: FileContainers?) throws {
        guard let files, let staged = try files.stage(batch) else {
            return try backing.commit(batch)
        }
        // Order matters: new files beside their targets, the changes with the list of pending
        // files, then the files in their places.
        do {
            try backing.commit(batch)
        } catch {
            files.drop(staged)
            throw error
        }
        files.publish(staged)
    }

    /// Defers a batch that storage need not have now; to be called with the backing.
    ///
    /// - Returns: False if it must be stored.
    func canDefer(_ batch: CommitBatch) -> Bool {
        switch batch.storing {
        case .now: return false
        case .never:
            guard !deferred.isEmpty else { return false }
            batch.isDeferred = true
        case .within(let nanoseconds):
            guard hasRoomToDefer(batch), keepPublished() || append(batch) else { return false }
            deferNow(batch, nanoseconds)
        }
        return true
    }

    /// Runs `body`, which commits a batch, with the deferred changes before it, and counts it.
    func withDeferred(_ batch: CommitBatch, _ body: () throws -> Void) throws {
        let start = clinux_monotonic_nanoseconds()
        guard deferredCount.load(ordering: .relaxed) > 0 else {
            try body()
            return noteStored(batch, since: start)
        }
        batch.earlier = deferred
        defer { batch.earlier = nil }
        try body()
        noteStored(batch, since: start)
        settleDeferred(through: deferred.lastRevision)
    }

    /// Reports whether the disk has room, if that has changed; called by the thread that has the
    /// backing, or had it last.
    ///
    /// Costs one comparison, without the lock, if nothing has changed.
    func answer(_ shortage: StateError?) {
        let isNow = shortage != nil
        guard isShort.exchange(isNow, ordering: .relaxed) != isNow else { return }
        let notify = state.withLock { state in
            state.finished.append(.room(shortage: shortage))
            return state.notify
        }
        notify()
    }

    /// Passes an answer to the thread that settles; a writer gives the backing back with it.
    ///
    /// - Returns: How many transactions wait for the next commit.
    func answer(_ finished: Finished) -> Int {
        let (notify, waiting, wakes) = state.withLock { state in
            state.finished.append(finished)
            switch finished {
            case .committed(let batch):
                if !batch.isDeferred, let revision = batch.storedRevision {
                    state.storedRevision = revision
                }
            case .failed(_, let error):
                state.isHalted = true
                if error.isOutcomeUnknown { _ = state.work.submit(.reopen) }
            // Otherwise a commit of what was queued could be running when it is refused.
            case .edited, .unopened: state.isHalted = true
            case .reopened(let adopted, _):
                // Otherwise the next failure would adopt them once more.
                if let last = adopted.last { state.storedRevision = last.revision }
                // What was published meanwhile and is not stored comes before what is queued.
                state.isHalted = true
            case .stored(let revision): state.storedRevision = revision
            case .raised, .compacted, .room, .deferral: break
            }
            if state.committer == .writer { state.committer = .nobody }
            return (state.notify, state.queuedCount, state.wakes())
        }
        if wakes { parking.signal() }
        notify()
        return waiting
    }
}
