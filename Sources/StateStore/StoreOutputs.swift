import StateContainers
import StateEngine
import Synchronization

/// The outputs of a store, from the access that returned this sequence on.
///
/// The sequence never throws, and ends only when its task is cancelled. It buffers 64 outputs for
/// its reader; then the oldest are dropped and counted. The first iterator gets what has been
/// buffered so far; each further one begins when it is made.
public struct StoreOutputs<Output: Sendable>: AsyncSequence, Sendable {
    /// An output.
    public typealias Element = Output
    /// Never throws.
    public typealias Failure = Never

    /// How many outputs a reader buffers.
    public static var bufferLimit: Int { 64 }

    private let hub: OutputHub<Output>
    private let first: ReaderSlot<Output>
    private let isTaken = TakenFlag()

    init(_ hub: OutputHub<Output>) {
        self.hub = hub
        first = hub.slot()
    }

    /// How many outputs were dropped before the first iterator took them.
    public var skipped: Int { first.skipped }

    /// Begins with the outputs since the access to the stream; further iterators begin now.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(slot: isTaken.set() ? first : hub.slot())
    }

    /// Calls `body` with each output, on the thread that sends it, as long as the returned object
    /// is retained.
    package func observe(_ body: @escaping @Sendable (Output) -> Void) -> any AnyObject & Sendable {
        hub.observe(body)
    }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let slot: ReaderSlot<Output>

        /// How many outputs were dropped before this iterator took them.
        public var skipped: Int { slot.skipped }

        /// Returns the next output, after waiting for it if necessary; nil if the task is
        /// cancelled.
        public mutating func next() async -> Output? { await next(isolation: nil) }

        /// Returns the next output, after waiting for it if necessary; nil if the task is
        /// cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> Output? {
            await slot.next(isolation: actor)
        }
    }
}

private final class TakenFlag: Sendable {
    private let isSet = Atomic(false)

    /// Sets the flag; returns true if it was not set before.
    func set() -> Bool { !isSet.exchange(true, ordering: .relaxed) }
}

/// The listeners to the outputs of one store.
final class OutputHub<Output: Sendable>: Sendable {
    private struct Listener: Sendable {
        weak var owner: (any AnyObject & Sendable)?
        let take: @Sendable (Output) -> Void
    }

    private struct Listeners: Sendable {
        var all: [Listener] = []
        /// How many there may be before those whose owner is gone are removed.
        var crowd = 16

        /// - Returns: The listeners before the removal, to be released after the lock: what they
        ///   captured may run arbitrary code when it goes.
        mutating func removeGone() -> [Listener] {
            defer {
                all.removeAll { $0.owner == nil }
                crowd = max(16, 2 * all.count)
            }
            return all
        }
    }

    private let listeners = StateLock(Listeners())

    /// Delivers `output` to all listeners, in the order in which they were added.
    func send(_ output: Output) {
        let all = listeners.withLock { $0.removeGone() }
        for listener in all where listener.owner != nil { listener.take(output) }
    }

    func slot() -> ReaderSlot<Output> {
        let slot = ReaderSlot<Output>(limit: StoreOutputs<Output>.bufferLimit) { outputs, output in
            defer { outputs.append(output) }
            return outputs.popFirst()
        }
        add(slot) { [weak slot] in slot?.put($0) }
        return slot
    }

    func observe(_ body: @escaping @Sendable (Output) -> Void) -> any AnyObject & Sendable {
        let owner = TakenFlag()
        add(owner, body)
        return owner
    }

    private func add(
        _ owner: any AnyObject & Sendable,
        _ take: @escaping @Sendable (Output) -> Void
    ) {
        let before = listeners.withLock { listeners -> [Listener] in
            defer { listeners.all.append(Listener(owner: owner, take: take)) }
            return listeners.all.count < listeners.crowd ? [] : listeners.removeGone()
        }
        withExtendedLifetime(before) {}
    }
}
