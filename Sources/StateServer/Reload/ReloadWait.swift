import CLinux
package import StateEngine

/// What the thread of a reload waits for, which may never come: a file on a network file system whose
/// server is gone, or a user whom a server has to know.
///
/// The thread and the loop share it.
package final class ReloadWait: Sendable {
    private struct State {
        /// What the thread waits for, and since when; nil if it computes.
        var present: (name: String, since: Int64)?
        /// Whether the loop waits for this reload no longer.
        var isOver = false
        /// Whether the thread has ended.
        var hasEnded = false
    }

    private let state = StateLock(State())

    package init() {}

    /// Whether the loop waits for this reload no longer.
    package var isOver: Bool { state.withLock(\.isOver) }

    var hasEnded: Bool { state.withLock(\.hasEnded) }

    /// Runs what may wait without an end.
    ///
    /// - Parameters:
    ///   - name: What it waits for, such as a path.
    ///   - body: Not inside another one.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; or that this took too long. The thread then has to end
    ///   without an effect, because another reload may have begun.
    package func during<R>(
        _ name: String,
        _ body: () throws(StateError) -> R
    ) throws(StateError) -> R {
        state.withLock { $0.present = (name, SystemClock.monotonicMilliseconds()) }
        let result = Result { () throws(StateError) in try body() }
        let isOver = state.withLock { state in
            state.present = nil
            return state.isOver
        }
        if isOver { throw StateError(.err, "this took too long: \(name)") }
        return try result.get()
    }

    /// Ends the wait of the loop if the thread has waited for the same since `time`.
    ///
    /// - Returns: What it waits for; or else from when on it has, at the earliest.
    func end(ifSince time: Int64, at now: Int64) -> (name: String?, since: Int64) {
        state.withLock { state in
            guard let present = state.present else { return (nil, now) }
            guard present.since <= time else { return (nil, present.since) }
            state.isOver = true
            return (present.name, present.since)
        }
    }

    /// Records that the thread has ended.
    func noteEnd() { state.withLock { $0.hasEnded = true } }
}

extension Optional where Wrapped == ReloadWait {
    /// The same; without a reload, runs `body`.
    package func during<R>(
        _ name: String,
        _ body: () throws(StateError) -> R
    ) throws(StateError) -> R {
        guard let self else { return try body() }
        return try self.during(name, body)
    }
}

extension StateError {
    /// Why a configuration was not reloaded.
    package static func notReloaded(_ code: Code, _ reason: String) -> StateError {
        StateError(code, "\(reason); not reloaded; the old configuration stays in force")
    }
}
