import StatePlatform
import Synchronization

extension LocalKeyspace {
    /// The identity of the store.
    public var epoch: Epoch { withCore { $0.epoch } }

    /// The newest revision on stable storage.
    public var revision: Int64 { withCore { $0.revisions.durable } }

    /// What the commit thread has done.
    package var meter: CommitMeter { queue.meter.withLock { $0 } }

    /// Whether the commit thread rests, so that a writer that waits commits by itself.
    package var isCommitThreadIdle: Bool { queue.isIdle }

    /// Whether commits wait and nobody takes them, which may be so for a moment.
    package var neglectsCommits: Bool { queue.state.withLock { $0.isNeglected } }

    /// What is being done with storage, as a number that is new for each thing, and the processor
    /// time that its thread has ever used, in nanoseconds; nil if nothing is, or if the system does
    /// not say.
    package var storageUse: (number: Int, nanoseconds: Int64)? { queue.use }

    /// How many changes have their answers although storage does not have them yet, and their bytes
    /// of keys and values.
    package var deferred: (count: Int, byteCount: Int) {
        (
            queue.deferredCount.load(ordering: .acquiring),
            queue.deferredByteCount.load(ordering: .relaxed)
        )
    }

    /// Waits until storage has everything that was published before the call; for a thread that
    /// does not settle.
    ///
    /// - Throws: The error of storage.
    package func waitForDeferred() throws(StateError) { try queue.waitForDeferred() }

    /// Has ``waitForDeferred()`` throw from now on, for those that wait already, too: the thread that settles
    /// is about to join them.
    package func endWaitsForDeferred() { queue.endStoreRequests() }

    /// At most so many bytes of keys and values may be published and not stored.
    package func setDeferredByteLimit(_ limit: Int) {
        queue.deferredByteLimit.store(limit, ordering: .relaxed)
    }

    /// How many entries are on stable storage.
    public var keyCount: Int { withCore { $0.entries.durableCount } }

    /// Makes all the mutations one commit, or none of them; see ``Keyspace/submit(_:completion:)``.
    ///
    /// - Complexity: O(*n*) in the bytes of keys and values, and one sync, shared by all commits
    ///   that wait for it.
    @discardableResult
    public func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        submit(mutations, commitsOnCaller: false, completion: completion)
    }

    /// The same for a thread that may wait for the answer; see ``WaitableKeyspace``.
    @discardableResult
    package func submit(
        _ mutations: [Mutation],
        commitsOnCaller: Bool,
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        do throws(StateError) { try requireHome() } catch {
            completion(.failure(error))
            return nil
        }
        let now = LocalKeyspace.now()
        let (provisional, delivers) = withCore { core -> (Int64?, Bool) in
            let before = core.revisions.provisional
            let answer = core.perform(mutations, at: now, completion)
            core.pending.hold(answer, above: core.revisions.durable)
            let isCommit = core.revisions.provisional > before
            return (isCommit ? core.revisions.provisional : nil, core.pending.hasDeliveries)
        }
        if delivers { deliver() }
        if publish(commitsOnCaller: commitsOnCaller) { settle { _ in } }
        return provisional
    }

    /// Runs `body`, and waits until everything written before its end is on stable storage.
    ///
    /// - Throws: The error of `body`, and that of a failed commit.
    package func durably<R>(
        _ body: (KeyspaceCore) throws(StateError) -> R
    ) throws(StateError) -> R {
        try requireHome()
        let answer = Answer()
        // Order matters: the answer is held under the same lock. A commit that ended before would
        // not answer it.
        let (result, waits) = try withCore { (core) throws(StateError) -> (R, Bool) in
            let result = try body(core)
            let revision = core.revisions.provisional
            guard revision > core.revisions.durable else { return (result, false) }
            core.pending.hold(
                PendingCommits.HeldAnswer(
                    revision: revision,
                    result: .success(revision),
                    completion: { answer.put($0) }
                )
            )
            return (result, true)
        }
        if publish() { settle { _ in } }
        if waits { _ = try answer.wait().get() }
        return result
    }

    /// Wall time in milliseconds since 1970.
    package static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The entry of `key` on stable storage; nil if there is none.
    ///
    /// - Complexity: O(*n*) in the bytes of key and value.
    public func entry(for key: Key) -> Entry? {
        withCore { core in
            guard let record = key.bytes.withUnsafeBytes({ core.readDurable($0) }),
                !core.isDue(record)
            else { return nil }
            return core.entry(record)
        }
    }

    /// The entries that match `pattern` after `key`, in key order, at most `limit`, on stable
    /// storage.
    ///
    /// - Complexity: O(*m*) in the entries below the pattern's literal part.
    public func entries(
        _ pattern: Pattern,
        after key: Key?,
        limit: Int
    ) -> [(
        key: Key, entry: Entry
    )] {
        withCore { core in
            var found: [(key: Key, entry: Entry)] = []
            func collect(_ bound: Bytes?) {
                core.forEachDurable(PatternSet([pattern]), after: bound) { record in
                    guard found.count < limit else { return false }
                    if core.isDue(record) { return true }
                    found.append((Key(verified: record.key), core.entry(record)))
                    return true
                }
            }
            if let key { key.bytes.withUnsafeBytes { collect($0) } } else { collect(nil) }
            return found
        }
    }
}

extension KeyspaceCore {
    /// A version as an independent value.
    package func entry(_ record: Record) -> Entry {
        Entry(
            value: record.value.map(Array.init) ?? [],
            revision: record.revision,
            created: record.created,
            version: record.version,
            time: record.time,
            owner: record.owner,
            cause: cause(of: record)
        )
    }

    /// Runs the mutations as one transaction of this process.
    func perform(
        _ mutations: [Mutation],
        at time: Int64,
        _ completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> PendingCommits.HeldAnswer {
        let cause = retainCause(Cause.thisProcess)
        defer { release(cause) }
        var receipt = Receipt()
        begin(cause, at: time)
        do throws(StateError) {
            for mutation in mutations { try perform(mutation, &receipt) }
        } catch {
            rollBack()
            return PendingCommits.HeldAnswer(
                revision: receipt.revision,
                result: .failure(error),
                completion: completion,
                mutations: admission.editable == nil ? [] : mutations
            )
        }
        let revision = finish(&receipt)
        let stands = receipt.revision
        return PendingCommits.HeldAnswer(
            revision: stands,
            result: .success(revision == 0 ? max(stands, revisions.durable) : revision),
            completion: completion,
            mutations: admission.editable == nil ? [] : mutations
        )
    }

    private func perform(
        _ mutation: Mutation,
        _ receipt: inout Receipt
    ) throws(StateError) {
        switch mutation {
        case .set(let key, let value, let revision, let expiry):
            try check(revision, of: key, &receipt)
            try key.bytes.withBorrowed { (key) throws(StateError) in
                try value.withBorrowed { (value) throws(StateError) in
                    try set(key, to: value, expiry: expiry)
                }
            }
        case .delete(let key, let revision):
            try check(revision, of: key, &receipt)
            try key.bytes.withBorrowed { (key) throws(StateError) in _ = try delete(key, &receipt) }
        case .check(let key, let revision):
            try check(revision, of: key, &receipt)
        }
    }

    private func check(
        _ revision: Int64?,
        of key: Key,
        _ receipt: inout Receipt
    ) throws(StateError) {
        guard let revision else { return }
        try key.bytes.withBorrowed { (key) throws(StateError) in
            try check(.revision(revision), of: key, &receipt)
        }
    }
}

extension [UInt8] {
    /// The bytes, borrowed for a call that may throw.
    package func withBorrowed<R>(_ body: (Bytes) throws(StateError) -> R) throws(StateError) -> R {
        let result = withUnsafeBytes { bytes -> Result<R, StateError> in
            do throws(StateError) { return .success(try body(bytes)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
