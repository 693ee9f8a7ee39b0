public import StateEngine

extension MonitoredContainer {
    /// The values: each iterator gets the current one first, then always the latest.
    public final var values: StateValues<Value> {
        StateValues { self.join($0, from: .current) }
    }

    /// The changes: each one, or one merged change that counts those it skipped.
    ///
    /// - Parameters:
    ///   - since: The last revision that the caller has seen; nil starts with the changes after the
    ///     iterator is made. If the container is past it, the first change has the current value as
    ///     `old` and `new`, since the earlier value is not kept. Its `skipped` counts the revisions
    ///     in between, which in a keyspace may belong to other keys; it is 0 if the epoch is
    ///     another.
    ///   - buffer: How many changes may wait for the reader, 1 to ``StateChanges/bufferLimit``;
    ///     further ones are merged with the last.
    /// - Returns: A sequence; each of its iterators registers when it is made.
    public final func changes(since: Revision? = nil, buffer: Int = 64) -> StateChanges<Value> {
        StateChanges(buffer: buffer) {
            self.join($0, from: since.map { .after($0) } ?? .now)
        }
    }

    /// Waits until `isDone` returns true for the value, which may be at once.
    ///
    /// - Returns: The value that `isDone` accepted; the container may have a newer one by now.
    /// - Throws: ``StateError/Code/timedOut``, naming the key, or `CancellationError`. The
    ///   container is unaffected.
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
            // The longest durations overflow the clock.
            try? await Task.sleep(for: min(timeout, .seconds(1_000_000_000)))
            slot.end()
        }
        defer { timer.cancel() }
        while let change = await slot.next() {
            let value = StateChange<Value>(change).new
            if isDone(value) { return value }
        }
        try Task.checkCancellation()
        throw StateError(.timedOut, "state '\(key)' did not meet the condition within \(timeout)")
    }
}
