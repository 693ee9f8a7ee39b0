public import StateEngine

extension MonitoredState {
    /// The values: for each iterator the current one, then always the latest.
    public final var values: StateValues<Value> {
        StateValues { self.join($0, from: .current) }
    }

    /// The changes: each one, or a gap that is counted.
    ///
    /// - Parameters:
    ///   - since: The revision that was seen last; nil: those from the time when the iterator is made. Where the container is past it,
    ///     the first change is the current value, its `old` the same, for the one of then is not kept; `skipped` counts the
    ///     revisions in between, which in a keyspace may be of other keys, and is 0 where the epoch is another.
    ///   - buffer: How many changes may wait for the reader, 1 to ``StateChanges/bufferLimit``; beyond that they become one with
    ///     the last.
    /// - Returns: A sequence that registers each of its iterators when it is made.
    public final func changes(since: Revision? = nil, buffer: Int = 64) -> StateChanges<Value> {
        StateChanges(buffer: buffer) {
            self.join($0, from: since.map { .after($0) } ?? .now)
        }
    }

    /// Waits until the value is as asked; it may be so already.
    ///
    /// - Returns: The value that `isDone` said yes to; there may be a newer one by now.
    /// - Throws: ``StateError/Code/timedOut``, naming the key, or `CancellationError`.
    public nonisolated(nonsending) final func wait(
        timeout: Duration,
        until isDone: (Value) -> Bool
    ) async throws -> Value {
        let slot = StreamSlot()
        let membership = join(slot, from: .current)
        defer { withExtendedLifetime(membership) {} }
        if let current = slot.take().map({ StateChange<Value>($0).new }), isDone(current) {
            return current
        }
        let timer = Task {
            // A clock cannot count to the end of all durations.
            try? await Task.sleep(for: min(timeout, .seconds(1_000_000_000)))
            slot.end()
        }
        defer { timer.cancel() }
        while let change = await slot.next() {
            let value = StateChange<Value>(change).new
            if isDone(value) { return value }
        }
        try Task.checkCancellation()
        throw StateError(.timedOut, "state '\(key)' was not as asked for within \(timeout)")
    }
}
