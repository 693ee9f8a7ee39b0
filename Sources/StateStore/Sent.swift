public import StateEngine

/// A message sent to a store.
public final class Sent: Sendable {
    private struct Progress {
        /// The outcome; nil: not handled yet.
        var outcome: Result<Revision, any Error>?
        /// How many remain of the message, its effects, and the messages that these sent.
        var pending = 1
        /// The error of the first of these messages that was refused.
        var failure: (any Error)?
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
        /// The effects of the message and of those that these sent.
        var effects: [ObjectIdentifier: any CancellableEffect] = [:]
        var isCancelled = false

        var isSettled: Bool { outcome != nil }
        var isFinished: Bool { pending == 0 }
    }

    private struct Waiter {
        let isDone: @Sendable (borrowing Progress) -> Bool
        let continuation: CheckedContinuation<Void, any Error>
    }

    private let progress = StateLock(Progress())

    /// Waits until the message's change is committed.
    ///
    /// - Returns: The revision of the commit.
    /// - Throws: Why the container refused the change; the state is unchanged, and no effect was
    ///   started. `CancellationError` if the waiting task is cancelled, which affects only the
    ///   wait.
    @discardableResult
    public func settled() async throws -> Revision {
        try await wait { $0.isSettled }
        guard let outcome = progress.withLock({ $0.outcome }) else { throw CancellationError() }
        return try outcome.get()
    }

    /// Waits until the message, its effects, and all messages and effects that they caused are
    /// done.
    ///
    /// If the waiting task is cancelled, so is the message; see ``cancel()``.
    ///
    /// - Throws: Why the first of these messages was refused, or `CancellationError`.
    public func finished() async throws {
        try await withTaskCancellationHandler {
            try await wait { $0.isFinished }
        } onCancel: {
            cancel()
        }
        if let failure = progress.withLock({ $0.failure }) { throw failure }
    }

    /// Cancels the effects of the message, and those of the messages that these sent.
    ///
    /// Changes that are committed stay. Of these messages, those that the reducer has not handled
    /// yet are not handled: ``settled()`` throws `CancellationError`. What the effects still send is
    /// ignored.
    public func cancel() {
        let effects = progress.withLock { progress in
            progress.isCancelled = true
            return Array(progress.effects.values)
        }
        for effect in effects { effect.cancel() }
    }

    // MARK: The store's side

    func settle(_ result: Result<Revision, any Error>) {
        update { progress in
            if progress.outcome == nil { progress.outcome = result }
            if case .failure(let error) = result, progress.failure == nil {
                progress.failure = error
            }
            progress.pending -= 1
        }
    }

    var isCancelled: Bool { progress.withLock { $0.isCancelled } }

    /// Whether ``finished()`` would return at once; for tests.
    package var isFinished: Bool { progress.withLock { $0.isFinished } }

    func begin() { update { $0.pending += 1 } }

    func end() { update { $0.pending -= 1 } }

    /// Records an effect of the message; it is cancelled at once if the message is.
    func begin(_ effect: any CancellableEffect) {
        let isCancelled = progress.withLock { progress in
            progress.pending += 1
            progress.effects[ObjectIdentifier(effect)] = effect
            return progress.isCancelled
        }
        if isCancelled { effect.cancel() }
    }

    func end(_ effect: any CancellableEffect) {
        update { progress in
            progress.pending -= 1
            progress.effects[ObjectIdentifier(effect)] = nil
        }
    }

    private func update(_ change: (inout Progress) -> Void) {
        let ready = progress.withLock { progress -> [CheckedContinuation<Void, any Error>] in
            change(&progress)
            guard !progress.waiters.isEmpty else { return [] }
            let ready = progress.waiters.filter { $0.value.isDone(progress) }
            for place in ready.keys { progress.waiters[place] = nil }
            return ready.values.map(\.continuation)
        }
        for continuation in ready { continuation.resume() }
    }

    private func wait(_ isDone: @escaping @Sendable (borrowing Progress) -> Bool) async throws {
        let place = progress.withLock { progress in
            progress.nextWaiter += 1
            return progress.nextWaiter
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // Cancelled before the wait: the cancellation handler found no waiter.
                let isNow = progress.withLock { progress in
                    if Task.isCancelled || isDone(progress) { return true }
                    progress.waiters[place] = Waiter(isDone: isDone, continuation: continuation)
                    return false
                }
                if isNow { continuation.resume() }
            }
            try Task.checkCancellation()
        } onCancel: {
            let waiter = progress.withLock { $0.waiters.removeValue(forKey: place) }
            waiter?.continuation.resume(throwing: CancellationError())
        }
    }
}

/// An effect that a message has started, or will.
protocol CancellableEffect: AnyObject, Sendable {
    func cancel()
}
