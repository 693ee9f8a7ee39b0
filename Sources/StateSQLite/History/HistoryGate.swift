import StateEngine

/// Lets readers of the history in.
///
/// While the store is reopened, keeps them out, with all connections closed.
///
/// An open connection would keep its index of the log. It would see pages that a failed disk took
/// from the log, because only the first connection to open a database checks how much of its log is
/// intact. And closing a descriptor of the database, as reopening does, drops the locks of all
/// connections in the process: a `sqlite3` shell would then consider itself the last one and remove
/// the log during commits. https://www.sqlite.org/howtocorrupt.html ("Posix advisory locks
/// canceled")
final class HistoryGate: Sendable {
    /// A reader's connection.
    ///
    /// It belongs to the reader while inside, or to the thread that has shut the gate: the proof of
    /// `@unchecked Sendable`.
    final class Slot: @unchecked Sendable {
        var connection: HistoryConnection?
    }

    private struct State {
        var slots: [Slot] = []
        var insideCount = 0
        /// Signalled once no reader is inside; nil while the gate is open.
        var closer: BlockingSemaphore?
        var waiting: [BlockingSemaphore] = []
    }

    private let state = StateLock(State())

    /// Adds a reader, which starts outside.
    func add(_ slot: Slot) { state.withLock { $0.slots.append(slot) } }

    func remove(_ slot: Slot) { state.withLock { $0.slots.removeAll { $0 === slot } } }

    /// Waits while the gate is shut.
    ///
    /// Must not be called by a reader that is inside.
    func enter() {
        while let turn = takeTurn() { turn.wait() }
    }

    private func takeTurn() -> BlockingSemaphore? {
        state.withLock { state in
            guard state.closer != nil else {
                state.insideCount += 1
                return nil
            }
            let turn = BlockingSemaphore()
            state.waiting.append(turn)
            return turn
        }
    }

    func leave() {
        let closer = state.withLock { state -> BlockingSemaphore? in
            state.insideCount -= 1
            return state.insideCount == 0 ? state.closer : nil
        }
        closer?.signal()
    }

    /// Runs `body` with no reader inside and every connection closed; one call at a time.
    func whileShut<R>(_ body: () throws -> R) rethrows -> R {
        let closer = BlockingSemaphore()
        let (isBusy, slots) = state.withLock { state in
            state.closer = closer
            return (state.insideCount > 0, state.slots)
        }
        if isBusy { closer.wait() }
        for slot in slots { slot.connection = nil }
        defer {
            let waiting = state.withLock { state in
                defer { (state.closer, state.waiting) = (nil, []) }
                return state.waiting
            }
            for turn in waiting { turn.signal() }
        }
        return try body()
    }
}
