import StateEngine

/// What a stream has not been asked for yet: so many changes at most, the last of which takes up those that come when it is full.
///
/// One task reads it. To put or take a change costs a lock and no memory; only a reader that waits is resumed through its executor.
package final class StreamSlot: Receiver {
    private typealias Reader = CheckedContinuation<ChangeRecord?, Never>

    private struct Buffer {
        var changes = Ring<ChangeRecord>()
        var reader: Reader?
        var isEnded = false
    }

    private enum Answer: Sendable {
        case now(ChangeRecord?)
        case later
    }

    private let buffer = StateLock(Buffer())
    private let limit: Int

    /// Makes one that keeps `limit` changes.
    package init(limit: Int = 1) { self.limit = limit }

    package func put(_ change: ChangeRecord) {
        let reader = buffer.withLock { buffer -> Reader? in
            if let reader = buffer.reader.take() { return reader }
            guard !buffer.isEnded else { return nil }
            if buffer.changes.count < limit {
                buffer.changes.append(change)
            } else {
                buffer.changes.replaceLast { change.merging($0) }
            }
            return nil
        }
        reader?.resume(returning: change)
    }

    /// The next change, waited for; nil: it has ended, or the task was cancelled.
    package func next(
        isolation: isolated (any Actor)? = #isolation
    ) async -> ChangeRecord? {
        if Task.isCancelled {
            end()
            return nil
        }
        if let change = take() { return change }
        return await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: isolation) { wait($0) }
        } onCancel: {
            end()
        }
    }

    /// The next change, where there is one.
    package func take() -> ChangeRecord? { buffer.withLock { $0.changes.popFirst() } }

    /// No more changes; a reader that waits is told so.
    package func end() {
        let reader = buffer.withLock { buffer in
            buffer.isEnded = true
            return buffer.reader.take()
        }
        reader?.resume(returning: nil)
    }

    /// Gives `reader` the next change as soon as there is one.
    private func wait(_ reader: Reader) {
        let answer = buffer.withLock { buffer -> Answer in
            precondition(buffer.reader == nil, "two tasks read one stream at once")
            if let change = buffer.changes.popFirst() { return .now(change) }
            if buffer.isEnded { return .now(nil) }
            buffer.reader = reader
            return .later
        }
        if case .now(let change) = answer { reader.resume(returning: change) }
    }
}
