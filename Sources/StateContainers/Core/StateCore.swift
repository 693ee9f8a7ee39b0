public import CLinux
public import StateEngine

/// The storage location of a container's value: one for each container in memory and scope, one for
/// each key in a keyspace.
///
/// Everything that changes is under the lock: the proof of `@unchecked Sendable`. This lock is
/// always taken last: under it only the body of a `modify` in memory runs.
@usableFromInline
package class StateCore<Value: Sendable>: @unchecked Sendable {
    /// Throws for values to refuse.
    package typealias Check = @Sendable (Value) throws(StateError) -> Void

    /// The state that all readers see.
    @usableFromInline
    struct Published: Sendable {
        @usableFromInline var value: Value
        @usableFromInline var number: Int64
        @usableFromInline var epoch: Epoch
        /// The queues that take each change; if there are none, no change record is made.
        @usableFromInline var queues: [ChangeQueue] = []
        /// The value that scopes begin with, as long as it is kept; only in memory.
        @usableFromInline var initial: InitialValue<Value>?
        /// How many changes were published.
        @usableFromInline var publishedCount: Int64 = 0

        init(_ value: Value, _ revision: Revision) {
            self.value = value
            number = revision.number
            epoch = revision.epoch
        }

        var revision: Revision { Revision(epoch: epoch, number: number) }

        /// Called before each change.
        @usableFromInline
        mutating func forgetInitial() {
            guard !StateScope.areExpected else { return }
            initial?.value = nil
            initial = nil
        }

        /// Replaces the value, and appends the change to the queues.
        mutating func publish(
            _ new: Value,
            _ revision: Revision,
            skipped: Int = 0,
            cause: Cause,
            depth: Int64,
            merges: Bool
        ) {
            if initial != nil { forgetInitial() }
            let old = value
            value = new
            number = revision.number
            epoch = revision.epoch
            guard !queues.isEmpty else { return }
            publishedCount += 1
            let facts = ChangeFacts(
                revision: revision,
                skipped: skipped,
                cause: cause,
                depth: depth,
                number: publishedCount
            )
            let change = ChangeValues(old, new, facts)
            for queue in queues { queue.put(change, merges: merges) }
        }

        /// The same for the next change that this process makes in memory, which has receivers.
        ///
        /// - Returns: The change, if it is to be delivered to the only queue by the caller.
        @inlinable
        mutating func publish(_ new: Value) -> ChangeRecord? {
            if initial != nil { forgetInitial() }
            number &+= 1
            publishedCount &+= 1
            let revision = Revision(epoch: epoch, number: number)
            let facts = ChangeFacts(ownAt: revision, number: publishedCount)
            let change = ChangeValues(value, new, facts)
            value = new
            if queues.count == 1 { return queues[0].pass(change) ? change : nil }
            for queue in queues { queue.put(change, merges: false) }
            return nil
        }

        mutating func add(_ queue: ChangeQueue) {
            if !queues.contains(where: { $0 === queue }) { queues.append(queue) }
        }

        mutating func remove(_ queue: ChangeQueue) { queues.removeAll { $0 === queue } }
    }

    @usableFromInline final let published: StateLock<Published>
    /// Whether a change only replaces the value: in memory, and every value is accepted.
    @usableFromInline final let isDirect: Bool
    /// Whether a value may own objects of the program's classes.
    ///
    /// A `deinit` can run any code, so a value that a change replaces is released after the locks.
    @usableFromInline final let ownsObjects: Bool
    /// Whether a read is noted for the Observation library.
    @usableFromInline final let isTracked: Bool
    /// Whether the value is a part of another one, which may be newer.
    @usableFromInline final let isPart: Bool
    package final let key: Key

    init(
        _ value: Value,
        key: Key,
        revision: Revision,
        isDirect: Bool,
        isTracked: Bool,
        isPart: Bool = false
    ) {
        published = StateLock(Published(value, revision))
        self.isDirect = isDirect
        ownsObjects = !_isPOD(Value.self) && TypeFacts.of(Value.self).mayOwnObjects
        self.isTracked = isTracked
        self.isPart = isPart
        self.key = key
    }

    // MARK: Reading

    @inlinable
    final func read() -> Value {
        checkBody()
        if isTracked { return readTracked() }
        return published.withLock { $0.value }
    }

    @usableFromInline
    final func readTracked() -> Value {
        track(\.self)
        return latest().value
    }

    /// Records that the caller reads the part at `path`, for the Observation library.
    ///
    /// Does nothing unless the caller is in `withObservationTracking` or the like: else every read
    /// would make the core publish its changes.
    func track<Member>(_ path: any KeyPath<Value, Member> & Sendable) {
        checkBody()
        if TrackingProbe.isTracking { tracker.access(path) }
    }

    /// The value and revision that a read finds.
    @usableFromInline
    func latest() -> (value: Value, revision: Revision) {
        published.withLock { ($0.value, $0.revision) }
    }

    package var versioned: (value: Value, revision: Revision) {
        checkBody()
        return latest()
    }

    @inlinable
    final func read<R, E: Error>(_ body: (borrowing Value) throws(E) -> R) throws(E) -> R {
        if isTracked { noteRead() }
        return try readInPlace(body)
    }

    @usableFromInline
    final func noteRead() { track(\.self) }

    /// The same, of which the Observation library learns nothing.
    @inlinable
    final func readInPlace<R, E: Error>(_ body: (borrowing Value) throws(E) -> R) throws(E) -> R {
        checkBody()
        let owner = Unmanaged.passUnretained(self).toOpaque()
        if isPart {
            let value = latest().value
            clinux_set_body(owner)
            defer { clinux_set_body(nil) }
            return try body(value)
        }
        // Not returned by the lock's closure: what the body returns stays in the caller's region.
        var result: Result<R, E>?
        published.withLock { published in
            clinux_set_body(owner)
            defer { clinux_set_body(nil) }
            do throws(E) { result = .success(try body(published.value)) } catch {
                result = .failure(error)
            }
        }
        guard let result else { preconditionFailure("the body of a read did not run") }
        return try result.get()
    }

    /// Traps if the calling thread is in the body of a `modify`, where using a container sooner or
    /// later deadlocks, or of a transaction, where it loses updates.
    @inlinable
    final func checkBody() {
        if let owner = clinux_body() { trapInBody(owner) }
    }

    @usableFromInline
    final func trapInBody(_ owner: UnsafeRawPointer) -> Never {
        RunningBody.trap(owner, "state '\(key)'")
    }

    // MARK: Replacing

    /// Runs `body` under the lock; the value that it replaces is released after the lock.
    final func replacing<R: Sendable>(_ body: (inout Published) -> R) -> R {
        var replaced: Value?
        let result = published.withLock { published in
            if ownsObjects { replaced = published.value }
            return body(&published)
        }
        withExtendedLifetime(replaced) {}
        return result
    }

    // MARK: In transactions

    /// The entry that a transaction begins with.
    func transactionEntry(
        check: Check?,
        _ expiry: Expiry
    ) -> StateTransaction.Entry<Value> {
        // Not checked: the thread is in the body of the transaction.
        let (value, revision) = published.withLock { ($0.value, $0.revision) }
        return StateTransaction.Entry(self, value, revision, check: check)
    }

    /// Publishes a value, if there is one, provided that `revision` is still current and `others`,
    /// called under the lock, returns true.
    ///
    /// The caller retains the value of that revision until all locks are released.
    ///
    /// - Returns: Whether `revision` was current and `others` returned true.
    final func publish(
        _ value: Value?,
        ifRevision revision: Revision,
        and others: () -> Bool
    ) -> Bool {
        var isCommitted = false
        published.withLock { published in
            guard published.revision == revision else { return }
            isCommitted = others()
            guard isCommitted, let value else { return }
            let next = Revision(epoch: revision.epoch, number: revision.number + 1)
            let depth = clinux_depth()
            published.publish(value, next, cause: .thisProcess, depth: depth, merges: false)
        }
        return isCommitted
    }

    // MARK: Queues

    /// Runs `body`, which adds a queue.
    func adding<R>(_ body: () -> R) -> R { body() }

    /// Called after a queue was removed.
    func noteRemoval() {}

    final func register(_ queue: ChangeQueue) {
        adding { published.withLock { $0.add(queue) } }
    }

    final func unregister(_ queue: ChangeQueue) {
        published.withLock { $0.remove(queue) }
        noteRemoval()
    }

    /// Delivers the waiting changes.
    @usableFromInline
    final func drain() {
        for queue in published.withLock({ $0.queues }) { queue.drain() }
    }

    /// Makes the notifier deliver the waiting changes.
    final func deliverLater() {
        for queue in published.withLock({ $0.queues }) { queue.drainLater() }
    }
}

/// The value that a container in memory begins with in each scope.
///
/// Its value is set under the lock of the container's core: the proof of `@unchecked Sendable`.
@usableFromInline
package final class InitialValue<Value: Sendable>: @unchecked Sendable {
    /// Nil once the container was changed in a process without scopes, so that it is in memory once
    /// and the change is made in place.
    var value: Value?

    init(_ value: Value) { self.value = value }
}

extension StateCore: BodyOwner {
    func trap(_ user: String) -> Never {
        fatalError("\(user) is used in the body of modify of state '\(key)': use withTransaction")
    }
}
