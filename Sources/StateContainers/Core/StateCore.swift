public import CLinux
public import StateEngine

/// Where the value of a container is: one for each container in memory and scope, one for each key in a keyspace.
///
/// Everything that changes is under the lock: the proof of `@unchecked Sendable`. It is the last lock that is taken: nothing is
/// called under it but the body of a `modify` in memory.
@usableFromInline
package class StateCore<Value: Sendable>: @unchecked Sendable {
    /// Refuses a value.
    package typealias Check = @Sendable (Value) throws(StateError) -> Void

    /// What everybody reads.
    @usableFromInline
    struct Published: Sendable {
        @usableFromInline var value: Value
        @usableFromInline var number: Int64
        @usableFromInline var epoch: Epoch
        /// Who takes each change; where nobody does, none is made.
        @usableFromInline var queues: [ChangeQueue] = []
        /// How many changes were told.
        var publishedCount: Int64 = 0

        init(_ value: Value, _ revision: Revision) {
            self.value = value
            number = revision.number
            epoch = revision.epoch
        }

        var revision: Revision { Revision(epoch: epoch, number: number) }

        /// Replaces the value, and puts what happened into the queues.
        mutating func publish(
            _ new: Value,
            _ revision: Revision,
            skipped: Int = 0,
            cause: Cause,
            depth: Int64,
            merges: Bool
        ) {
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

        mutating func add(_ queue: ChangeQueue) {
            if !queues.contains(where: { $0 === queue }) { queues.append(queue) }
        }

        mutating func remove(_ queue: ChangeQueue) { queues.removeAll { $0 === queue } }
    }

    @usableFromInline final let published: StateLock<Published>
    /// Whether a change is nothing but a change of the value: in memory, and any value is good.
    @usableFromInline final let isDirect: Bool
    package final let key: Key

    init(_ value: Value, key: Key, revision: Revision, isDirect: Bool) {
        published = StateLock(Published(value, revision))
        self.isDirect = isDirect
        self.key = key
    }

    // MARK: Reading

    @inlinable
    final func read() -> Value {
        checkBody()
        return published.withLock { $0.value }
    }

    package final var versioned: (value: Value, revision: Revision) {
        checkBody()
        return published.withLock { ($0.value, $0.revision) }
    }

    @inlinable
    final func read<R, E: Error>(_ body: (borrowing Value) throws(E) -> R) throws(E) -> R {
        checkBody()
        let mark = Unmanaged.passUnretained(self).toOpaque()
        // Not as a result of the lock's own: what the body returns stays the caller's.
        var result: Result<R, E>?
        published.withLock { published in
            clinux_set_body(mark)
            defer { clinux_set_body(nil) }
            do throws(E) { result = .success(try body(published.value)) } catch {
                result = .failure(error)
            }
        }
        guard let result else { preconditionFailure("the body of a read did not run") }
        return try result.get()
    }

    /// Traps where the calling thread is in the body of a `modify`: to touch a container there is to wait for oneself, sooner or later.
    @inlinable
    final func checkBody() {
        if let container = clinux_body() { trapInBody(container) }
    }

    @usableFromInline
    final func trapInBody(_ container: UnsafeRawPointer) -> Never {
        let other = Unmanaged<AnyObject>.fromOpaque(container).takeUnretainedValue()
        let name = (other as? any KeyedCore)?.key.description ?? "another"
        fatalError(
            "state '\(key)' is touched in the body of modify of state '\(name)': use withTransaction"
        )
    }

    // MARK: In transactions

    /// What a transaction begins with.
    func transactionEntry(check: Check?) -> StateTransaction.Entry<Value> {
        let (value, revision) = versioned
        return StateTransaction.Entry(self, value, revision, check: check)
    }

    /// Publishes a value, where there is one, if the one at `revision` is still current and `others`, called under the lock, says
    /// yes.
    ///
    /// - Returns: Whether it was, and they did.
    final func publish(
        _ value: Value?,
        ifRevision revision: Revision,
        and others: () -> Bool
    ) -> Bool {
        var stands = false
        published.withLock { published in
            guard published.revision == revision else { return }
            stands = others()
            guard stands, let value else { return }
            let next = Revision(epoch: revision.epoch, number: revision.number + 1)
            let depth = clinux_depth()
            published.publish(value, next, cause: .thisProcess, depth: depth, merges: false)
        }
        return stands
    }

    // MARK: Who takes changes

    final func register(_ queue: ChangeQueue) {
        published.withLock { $0.add(queue) }
    }

    final func unregister(_ queue: ChangeQueue) { published.withLock { $0.remove(queue) } }

    /// Tells of the changes that wait.
    @usableFromInline
    final func drain() {
        for queue in published.withLock({ $0.queues }) { queue.drain() }
    }
}

/// A core whatever it holds, for messages.
protocol KeyedCore: AnyObject {
    var key: Key { get }
}

extension StateCore: KeyedCore {}
