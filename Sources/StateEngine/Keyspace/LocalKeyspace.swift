/// The keyspace in this process: what a program embeds, and what `stated` serves.
///
/// A write is visible at once to readers of provisional versions (the daemon's connections, whose
/// replies are held). It becomes durable, published and readable for everybody else once the commit
/// thread or a waiting writer has put it on stable storage.
///
/// It stays open as long as anybody holds it, a container in it, a query or a watch of it.
public final class LocalKeyspace: WaitableKeyspace {
    /// The outcome of a batch.
    package enum Outcome {
        /// Everything up to this revision is durable now, and was delivered to its watchers.
        case durable(through: Int64)
        /// Everything from this revision on was undone.
        case failed(from: Int64, StateError)
        /// The store is open again after a commit whose outcome is unknown. It held `adopted`
        /// commits beyond those published, up to this revision, and they are published now; the
        /// revision is 0 if there are none.
        case reopened(adopted: Int, through: Int64)
        /// It could not be opened, and will be tried again; writes are refused until then.
        case unopened(StateError)
        /// If not nil, the disk is full and only keys in memory can be set; nil: all keys can.
        case room(shortage: StateError?)
        /// If not nil, storage cannot have deferred changes yet, and is asked again; nil: it has them.
        case deferral(failure: StateError?)
        /// Nothing became durable or was undone: revisions were reserved, history was compacted.
        case unchanged
    }

    /// The lock around the state.
    @usableFromInline
    final class CoreLock: Sendable {
        @usableFromInline let lock: StateLock<KeyspaceCore>

        init(_ core: KeyspaceCore) { lock = StateLock(core) }
    }

    @usableFromInline let core: CoreLock
    let queue: CommitQueue
    package let backing: any Backing
    /// Called once, after the store is closed.
    private let didClose: @Sendable () -> Void
    /// The same store for the commit thread, which must not keep it open by holding this object; nil
    /// in that one.
    let inner: LocalKeyspace?
    private let home = HomeProcess()
    /// The same store; this reference does not keep it open.
    ///
    /// For what other threads than the program's hold for a moment. Otherwise the store could close a
    /// little later than the program lets it go.
    package var unowned: LocalKeyspace { inner ?? self }
    /// Whether commits go to storage before they are published.
    package let isPersistent: Bool

    /// Opens the store and reads it.
    ///
    /// It stays open until ``close()``, or until its last reference goes, which does the same and so
    /// waits for storage.
    ///
    /// - Throws: ``StateError`` if the store is locked, corrupt, of a newer format or cannot be
    ///   opened; the store stays unchanged.
    /// - Complexity: O(*n*) in the changes of the history.
    public convenience init(backing: any Backing, limits: Limits = Limits()) throws(StateError) {
        try self.init(backing: backing, limits: limits) {}
    }

    /// The same; `didClose` is called once, after the store is closed.
    package init(
        backing: any Backing,
        limits: Limits = Limits(),
        didClose: @escaping @Sendable () -> Void
    ) throws(StateError) {
        let store = StoreTraits(
            epoch: Epoch(bits: 1),
            isPersistent: backing.isPersistent,
            hasHistory: backing.capabilities.history != nil
        )
        let loaded = KeyspaceCore(store, limits: limits)
        do {
            loaded.finishLoading(try backing.load { loaded.load($0) })
        } catch let error as StateError {
            throw error
        } catch {
            throw StateError(.storage, "\(error)")
        }
        queue = CommitQueue(backing: backing, revision: loaded.revisions.durable)
        let capabilities = queue.capabilities
        loaded.admission.editable = capabilities.editing
        loaded.metadata.isKept = capabilities.keepsMetadata || !backing.isPersistent
        self.backing = backing
        self.didClose = didClose
        isPersistent = backing.isPersistent
        if let reservation = capabilities.reservation { loaded.revisions.reserve(in: reservation) }
        loaded.compacting = capabilities.compaction
        core = CoreLock(loaded)
        let inner = LocalKeyspace(core, queue, backing, didClose)
        self.inner = inner
        // An intended cycle until `close`: the commit thread uses what this object owns.
        queue.setNotify { inner.settle { _ in } }
        queue.start()
        capabilities.editing?.watchOutside { [weak queue] in queue?.submit(.look) }
    }

    /// Makes the keyspace of the commit thread.
    private init(
        _ core: CoreLock,
        _ queue: CommitQueue,
        _ backing: any Backing,
        _ didClose: @escaping @Sendable () -> Void
    ) {
        self.core = core
        self.queue = queue
        self.backing = backing
        self.didClose = didClose
        inner = nil
        isPersistent = backing.isPersistent
    }

    deinit {
        guard let inner, !home.isCurrent || !isClosed else { return }
        guard queue.isOnItsThread || isHandingOut else { return inner.close() }
        // The commit thread cannot wait for its own end, nor a delivering thread for its own
        // deliveries.
        WorkerThread(name: "close").start { inner.close() }
    }

    /// - Throws: ``StateError/Code/readOnly`` in a child that was forked: nobody commits there, and a lock
    ///   that another thread had at that moment is never released.
    func requireHome() throws(StateError) {
        guard !home.isCurrent else { return }
        throw StateError(
            .readOnly,
            "the store belongs to the process that this one was forked from: nothing was committed; open "
                + "it in the process that uses it"
        )
    }

    private var isClosed: Bool { withCore { $0.admission.refusals.closure != nil } }

    /// Whether the caller is on the commit thread, which must not call ``close()``.
    package var isOnCommitThread: Bool { queue.isOnItsThread }

    /// Commits what is queued and closes the store.
    ///
    /// Later writes are refused. If it was closed before, nothing happens. A completion handler or a
    /// receiver must not call it: that ends the process.
    public func close() {
        guard home.isCurrent else {
            backing.close()
            return didClose()
        }
        checkMayWait()
        let refusal = StateError(.readOnly, "the keyspace is closed")
        let isFirst = withCore { core in
            defer { core.admission.refusals.closure = refusal }
            return core.admission.refusals.closure == nil
        }
        guard isFirst else { return }
        publish()
        queue.stop()
        closeFiles()
        settle { _ in }
        withCore { settleAtTheEnd($0) }
        settle { _ in }
        queue.setNotify {}
        // Order matters: nobody takes a revision any more, and the directory is still locked.
        giveBackRevisions()
        backing.close()
        didClose()
    }

    /// Gives back reserved revisions that were not used.
    ///
    /// If that fails, the next process goes on after the whole block, and nothing else is lost.
    private func giveBackRevisions() {
        let (reservation, newest) = withCore { ($0.revisions.reservation, $0.revisions.newest) }
        try? reservation?.lower(to: newest)
    }

    /// The history, if the backing keeps one.
    package var history: (any HistoryBacking)? { queue.capabilities.history }

    /// The newest revision that may be published before storage has it; 0 if there is none.
    package var addedRevision: Int64 { queue.addedRevision }

    // MARK: The keyspace's own state

    /// Runs `body` with exclusive access to the state.
    @inlinable
    package func withCore<R, E: Error>(_ body: (KeyspaceCore) throws(E) -> R) throws(E) -> R {
        try core.lock.withLock { (core) throws(E) -> R in try body(core) }
    }

    /// Sets who settles the answers of storage: by default the thread that committed.
    ///
    /// - Parameter wake: Called by the thread that committed whenever there is something to
    ///   ``settle(_:)``. It may only wake another thread, which must hold the keyspace until it is
    ///   closed.
    package func settleElsewhere(_ wake: @escaping @Sendable () -> Void) { queue.setNotify(wake) }

    /// Passes finished transactions to the commit thread; without storage, publishes them.
    ///
    /// - Parameters:
    ///   - commitsOnCaller: Whether the caller calls ``commitOnCaller()`` next.
    ///   - keeps: Whether the caller does not call ``keepPublished()`` next.
    /// - Returns: Whether there is something to settle already.
    @discardableResult
    package func publish(commitsOnCaller: Bool = false, keeps: Bool = true) -> Bool {
        defer { if keeps, hasUnkept { keepPublished() } }
        return withCore { core in
            let filling = core.pending.filling
            guard !filling.isEmpty else { return false }
            if core.revisions.takesReservation() { queue.submit(.reserve(at: 0)) }
            guard isPersistent else { return true }
            queue.submit(filling, commitsOnCaller: commitsOnCaller)
            return false
        }
    }

    /// The same before all requests at hand were read, if the commit thread is idle and there is
    /// enough for a sync, or if there are files or bytes enough for a commit of their own.
    package func publishEarly() {
        guard isPersistent else { return }
        withCore { core in
            let filling = core.pending.filling
            let isMuch = filling.transactionCount >= 64 && queue.isIdle
            if isMuch || filling.fileSteps >= CommitQueue.fileStepCount
                || filling.byteCount >= CommitQueue.byteCount
            {
                queue.submit(filling, commitsOnCaller: false)
            }
        }
    }

    /// Commits what waits for storage on this thread, if the commit thread is idle.
    package func commitOnCaller() { queue.commitHere() }

    /// Settles the answers of storage: watchers are served first, then `report` is called, then
    /// deliveries are made.
    ///
    /// - Parameter report: Called under the keyspace's lock.
    package func settle(_ report: (Outcome) -> Void) {
        let delivers = withCore { core in
            for finished in queue.takeFinished() { report(settle(finished, in: core)) }
            if !isPersistent, !core.pending.filling.isEmpty {
                core.settle(core.pending.filling)
                core.pending.filling.removeAll()
                core.pending.release(through: core.revisions.durable)
                report(.durable(through: core.revisions.durable))
            }
            return core.pending.hasDeliveries
        }
        if delivers { deliver() }
    }

    private func settle(_ finished: CommitQueue.Finished, in core: KeyspaceCore) -> Outcome {
        switch finished {
        case .committed(let batch): return settleCommit(of: batch, in: core)
        case .failed(let batch, let error): return settleFailure(of: batch, error, in: core)
        case .edited(let batch, let changes):
            return settleEdits(changes, interrupting: batch, in: core)
        case .reopened(let changes, let metadata):
            return settleReopening(changes, metadata, in: core)
        case .unopened(let error):
            core.refuseWrites(after: error)
            return failQueued(in: core) ?? .unopened(error)
        case .room(let shortage):
            core.admission.refusals.setShortage(shortage, at: LocalKeyspace.now())
            return .room(shortage: shortage)
        case .stored(let revision):
            core.revisions.markStored(revision)
            return .unchanged
        case .deferral(let failure):
            core.admission.refusals.cannotDefer = failure != nil
            return .deferral(failure: failure)
        case .raised(let reservation):
            core.revisions.allow(through: reservation)
            return .unchanged
        case .compacted(let step, let answers):
            if let step { core.takeOver(step) }
            for answer in answers { core.pending.deliver(.compaction(answer)) }
            return .unchanged
        }
    }

    private func settleCommit(of batch: CommitBatch, in core: KeyspaceCore) -> Outcome {
        // The queue has stopped without reopening the store.
        if core.admission.refusals.reopening != nil { settleInDoubt(core) }
        core.settle(batch)
        core.pending.release(through: core.revisions.durable)
        queue.recycle(batch)
        return .durable(through: core.revisions.durable)
    }
}

/// What is finished but not on stable storage, and who waits for it.
package struct PendingCommits: ~Copyable {
    /// A caller's answer, until the commit that it depends on is durable or undone.
    struct HeldAnswer {
        var revision: Int64
        var result: Result<Int64, StateError>
        var completion: @Sendable (Result<Int64, StateError>) -> Void
        /// The request, if it may have to be repeated.
        var mutations: [Mutation] = []
    }

    /// What must be delivered without the lock.
    enum Delivery {
        case event(KeyspaceEvent, LocalWatch)
        case answer(HeldAnswer)
        case compaction(CompactionAnswer)
    }

    /// What the commit thread does not have yet.
    package let filling = CommitBatch()
    /// Transactions before a commit whose outcome is unknown; nothing undoes them until the store
    /// is open again.
    let inDoubt = CommitBatch()
    /// Bytes of everything that is finished and not durable.
    package internal(set) var byteCount = 0
    /// What the commit thread has to do for the files of that; see ``FileWork/steps``.
    package internal(set) var fileSteps = 0
    /// Waiting answers, in order of revision.
    private var answers: [HeldAnswer] = []
    private var deliveries: [Delivery] = []
    /// Whether somebody is delivering them.
    private var isDelivering = false

    /// Keeps an answer until what it depends on is durable or undone.
    ///
    /// A refusal may depend on an earlier commit than the answers before it: it waits among the
    /// answers of its revision.
    ///
    /// - Complexity: O(*m*) in the answers of later revisions.
    mutating func hold(_ answer: HeldAnswer) {
        var place = answers.count
        while place > 0, answers[place - 1].revision > answer.revision { place -= 1 }
        answers.insert(answer, at: place)
    }

    /// The same, but an answer that depends on nothing above `durable` is delivered.
    mutating func hold(_ answer: HeldAnswer, above durable: Int64) {
        if answer.revision > durable { hold(answer) } else { deliver(.answer(answer)) }
    }

    /// Everything up to `durable` is on stable storage: delivers the answers that waited for it.
    mutating func release(through durable: Int64) {
        guard let first = answers.first, first.revision <= durable else { return }
        let end = answers.firstIndex { $0.revision > durable } ?? answers.count
        for answer in answers[..<end] { deliver(.answer(answer)) }
        answers.removeFirst(end)
    }

    /// Commits from `revision` on have failed: delivers the error to those who waited for them.
    mutating func fail(from revision: Int64, _ error: StateError) {
        let start = answers.firstIndex { $0.revision >= revision } ?? answers.count
        for var answer in answers[start...] {
            answer.result = .failure(error)
            deliver(.answer(answer))
        }
        answers.removeSubrange(start...)
    }

    /// Takes all waiting answers.
    mutating func takeAnswers() -> [HeldAnswer] {
        defer { answers = [] }
        return answers
    }

    // MARK: Handing out

    var hasDeliveries: Bool { !deliveries.isEmpty }

    mutating func deliver(_ delivery: Delivery) { deliveries.append(delivery) }

    /// What the caller must deliver; nil if there is nothing or somebody else is delivering.
    ///
    /// `goingOn`: whether the caller has already begun.
    mutating func takeDeliveries(goingOn: Bool) -> [Delivery]? {
        if isDelivering, !goingOn { return nil }
        guard !deliveries.isEmpty else {
            isDelivering = false
            return nil
        }
        isDelivering = true
        defer { deliveries = [] }
        return deliveries
    }

    /// The caller delivers no more, though there may be more.
    mutating func stopDelivering() { isDelivering = false }
}
