import StateEngine

/// Lets readers of the history in, and while the store is opened again keeps them out, with nothing open.
///
/// A connection that stayed open would keep the index of the log: what a disk that failed took from the log would count as there,
/// for only the first who opens a database finds out how far its log is whole. And who closes a descriptor of the database, as
/// reopening does, drops the locks of all connections in the process: a `sqlite3` shell would then take itself for the last one
/// and remove the log under commits. https://www.sqlite.org/howtocorrupt.html ("Posix advisory locks canceled")
final class HistoryGate: Sendable {
    /// A reader's connection: of who is inside, or of who has shut the gate, which is the proof of `@unchecked Sendable`.
    final class Slot: @unchecked Sendable {
        var connection: HistoryConnection?
    }

    private struct State {
        var slots: [Slot] = []
        var insideCount = 0
        /// Signalled once nobody is inside; nil while the gate is open.
        var closer: BlockingSemaphore?
        var waiting: [BlockingSemaphore] = []
    }

    private let state = StateLock(State())

    /// Adds a reader, who is outside.
    func add(_ slot: Slot) { state.withLock { $0.slots.append(slot) } }

    func remove(_ slot: Slot) { state.withLock { $0.slots.removeAll { $0 === slot } } }

    /// Waits while the gate is shut; not by who is inside.
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

    /// Runs `body` with nobody inside and every connection closed; one at a time.
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
