public import StateModel
import StateSystem

/// A lock that the processes of a machine share through the daemon.
///
/// It is free again when its holder is done or its process ends, however it ends. Waiting is in the
/// order of arrival, beside `statectl lock` of the same name. A restart of the daemon keeps holders
/// and waiters.
///
/// ```swift
/// let lock = try RemoteLock("backup")
/// try lock.withLock { grant in try store(snapshot, token: grant.token) }
/// ```
///
/// One object may be used by any number of threads and tasks; each call is a contender of its own.
public final class RemoteLock: Sendable {
    /// The name; a part of keys.
    public let name: String
    /// Whether others that share the lock may have it at the same time.
    public let isShared: Bool
    private let keyspace: RemoteKeyspace

    /// The right to do what the lock protects.
    public struct Grant: Sendable {
        /// The fencing token: later holders have larger ones, so what the lock protects can refuse a
        /// smaller one than it has seen.
        public let token: Int64
        fileprivate let contender: LockRequest

        /// Whether the lock was lost: somebody deleted its key, or the daemon keeps everything in
        /// memory and was restarted.
        public var isLost: Bool { contender.isLost }
    }

    /// Makes a lock; contacts nobody.
    ///
    /// - Parameters:
    ///   - name: At most 1,000 bytes that a key may have.
    ///   - isShared: Whether others that share the lock may have it at the same time.
    ///   - keyspace: The daemon; nil: the one that `statectl` uses, on the connection that the
    ///     process shares.
    /// - Throws: ``StateError/Code/invalidRequest`` for a name that no key can have.
    public init(
        _ name: String,
        isShared: Bool = false,
        in keyspace: RemoteKeyspace? = nil
    ) throws(StateError) {
        _ = try LockQueue.prefix(of: name)
        (self.name, self.isShared) = (name, isShared)
        if let keyspace { self.keyspace = keyspace } else { self.keyspace = try .shared() }
    }

    /// Runs `body` while this has the lock; blocks the thread until then.
    ///
    /// If the daemon is away when `body` is done, the lock is free once it is back.
    ///
    /// - Parameters:
    ///   - time: How long to wait for the lock; nil: as long as it takes.
    ///   - body: Must not wait for the keyspace on its own thread.
    /// - Returns: What `body` returns.
    /// - Throws: ``StateError/Code/conflict``, naming who has the lock, if the time is over;
    ///   ``StateError/Code/unreachable`` if there is no daemon; the daemon's error; or what `body`
    ///   throws. Nobody holds the lock for this call then.
    @discardableResult
    public func withLock<R>(
        waitingUpTo time: Duration? = nil,
        _ body: (Grant) throws -> R
    ) throws -> R {
        let request = try LockRequest(name, isShared: isShared, in: keyspace)
        request.expire(after: time)
        let result = request.answer.wait()
        defer { request.leave().wait() }
        return try body(Grant(token: result.get(), contender: request))
    }

    /// The same without blocking a thread, for a body that does not wait.
    @discardableResult
    public nonisolated(nonsending) func withLock<R>(
        waitingUpTo time: Duration? = nil,
        _ body: (Grant) throws -> R
    ) async throws -> R {
        try await withLock(waitingUpTo: time) { (grant) async throws -> R in try body(grant) }
    }

    /// The same without blocking a thread.
    @discardableResult
    public nonisolated(nonsending) func withLock<R>(
        waitingUpTo time: Duration? = nil,
        _ body: (Grant) async throws -> R
    ) async throws -> R {
        let request = try LockRequest(name, isShared: isShared, in: keyspace)
        request.expire(after: time)
        await request.answer.wait()
        guard let result = request.answer.result else {
            preconditionFailure("a lock was answered without a result")
        }
        do {
            let value = try await body(Grant(token: result.get(), contender: request))
            await request.leave().wait()
            return value
        } catch {
            await request.leave().wait()
            throw error
        }
    }
}

/// One contender for a lock, from its arrival until its key is deleted.
///
/// It follows the queue with a watch, which retains it; the end of the watch releases it. Its state
/// is under a lock, under which nobody is called.
private final class LockRequest: Sendable {
    /// The token, or why there is none.
    let answer = Answer()
    private let name: String
    private let key: Key
    private let value: [UInt8]
    private let keyspace: RemoteKeyspace
    private let gone = Answer()
    private let state = StateLock(State())

    private struct State {
        var watch: (any KeyspaceWatch)?
        var contenders: [[UInt8]: LockQueue.Contender] = [:]
        /// Whether its own key was set.
        var hasArrived = false
        var isGranted = false
        var isLost = false
        var isLeaving = false
    }

    /// What to do after an event.
    private enum Step {
        case wait
        case enter
        case grant(token: Int64)
        case fail(StateError)
        case delete
        case end
    }

    init(_ name: String, isShared: Bool, in keyspace: RemoteKeyspace) throws(StateError) {
        (self.name, self.keyspace) = (name, keyspace)
        key = try LockQueue.makeKey(of: name)
        value = LockQueue.value(isShared: isShared)
        let prefix = try LockQueue.prefix(of: name)
        let watch = keyspace.watch { [self] in receive($0) }
        state.withLock { $0.watch = watch }
        watch.include([prefix])
        enter()
    }

    var isLost: Bool { state.withLock { $0.isLost } }

    /// Gives up after a time, unless it has the lock by then.
    func expire(after time: Duration?) {
        guard let time else { return }
        Task.detached { [weak self] in
            try? await Task.sleep(for: time)
            self?.giveUp(after: time)
        }
    }

    /// Leaves the queue.
    ///
    /// - Returns: Answered when its key is deleted, or cannot be now: then it is once the daemon is
    ///   back.
    func leave() -> Answer {
        state.withLock { $0.isLeaving = true }
        delete()
        return gone
    }

    private func giveUp(after time: Duration) {
        let obstacle = state.withLock { state -> LockQueue.Contender?? in
            guard !state.isGranted else { return nil }
            state.isLeaving = true
            return .some(LockQueue(Array(state.contenders.values)).obstacle(for: key.bytes))
        }
        guard let obstacle else { return }
        let holder = obstacle.map { ": process \($0.cause.pid) is before this one" } ?? ""
        let text = Quantity.text(time)
        answer.putFirst(
            .failure(StateError(.conflict, "lock '\(name)' was not free within \(text)\(holder)"))
        )
    }

    // MARK: Requests

    private func enter() {
        let mutation = Mutation.set(key, value, ifRevision: 0, expires: .with(.process))
        keyspace.submit([mutation]) { [self] result in
            guard case .failure(let error) = result else { return }
            // It may have been set: the watch shows it. A conflict says that it was.
            guard error.code != .outcomeUnknown, error.code != .conflict else { return }
            fail(error)
        }
    }

    private func delete() {
        keyspace.submit([.delete(key)]) { [self] result in
            if case .success = result { end() }
            gone.putFirst(result)
        }
    }

    private func fail(_ error: StateError) {
        answer.putFirst(.failure(error))
        if state.withLock({ !$0.hasArrived }) { end() }
    }

    private func end() {
        let watch = state.withLock { state in
            defer { state.watch = nil }
            return state.watch
        }
        watch?.cancel()
    }

    // MARK: Events

    private func receive(_ event: KeyspaceEvent) {
        let step = state.withLock { state in
            take(event, &state)
            return next(event, &state)
        }
        switch step {
        case .wait: break
        case .enter: enter()
        case .grant(let token): answer.putFirst(.success(token))
        case .fail(let error): fail(error)
        case .delete: delete()
        case .end: end()
        }
    }

    private func take(_ event: KeyspaceEvent, _ state: inout State) {
        switch event {
        case .state(_, _, let changes):
            state.contenders = [:]
            for change in changes { note(change, change.cause, &state) }
        case .commit(_, let changes, let cause):
            for change in changes { note(change, cause, &state) }
        case .away, .resumed, .refused: break
        }
    }

    private func note(_ change: KeyspaceChange, _ cause: Cause?, _ state: inout State) {
        guard LockQueue.name(of: change.key.bytes) == Array(name.utf8) else { return }
        // A contender sets its key once: the revision of its last change is its token.
        state.contenders[change.key.bytes] = change.value.map {
            LockQueue.Contender(
                key: change.key.bytes,
                value: $0,
                created: change.revision,
                time: 0,
                cause: cause ?? .unknown
            )
        }
    }

    private func next(_ event: KeyspaceEvent, _ state: inout State) -> Step {
        if case .refused(_, let error) = event { return .fail(error) }
        guard let own = state.contenders[key.bytes] else {
            if state.isLeaving { return state.hasArrived ? .end : .wait }
            if state.isGranted { state.isLost = true }
            // After a lost connection, the request may not have arrived.
            let isNew = state.hasArrived || { if case .state = event { true } else { false } }()
            guard !state.isGranted, isNew, answer.result == nil else { return .wait }
            state.hasArrived = false
            return .enter
        }
        state.hasArrived = true
        if state.isLeaving {
            switch event {
            case .state, .resumed: return .delete
            default: return .wait
            }
        }
        guard !state.isGranted,
            LockQueue(Array(state.contenders.values)).obstacle(for: key.bytes) == nil
        else { return .wait }
        state.isGranted = true
        return .grant(token: own.token)
    }
}
