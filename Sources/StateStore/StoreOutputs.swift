import StateContainers
import StateEngine
import Synchronization

/// The outputs of a store from the access on that gave this.
///
/// It never fails, and ends only where its task is cancelled. It keeps 64 outputs for its reader; then the oldest go, and are
/// counted. The first iterator takes what has come so far, each further one begins anew.
public struct StoreOutputs<Output: Sendable>: AsyncSequence, Sendable {
    /// An output.
    public typealias Element = Output
    /// None.
    public typealias Failure = Never

    /// How many outputs wait for a reader at most.
    public static var bufferLimit: Int { 64 }

    private let hub: OutputHub<Output>
    private let first: ReaderSlot<Output>
    private let isTaken = TakenFlag()

    init(_ hub: OutputHub<Output>) {
        self.hub = hub
        first = hub.slot()
    }

    /// How many outputs the first iterator was not given, for it came too late.
    public var skipped: Int { first.skipped }

    /// Begins with the outputs from the access on.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(slot: isTaken.set() ? first : hub.slot())
    }

    /// Calls `body` with each output, on the thread that says it, as long as what is returned is kept.
    package func observe(_ body: @escaping @Sendable (Output) -> Void) -> any AnyObject & Sendable {
        hub.observe(body)
    }

    /// One reader, for one task at a time.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let slot: ReaderSlot<Output>

        /// How many outputs it was not given, for it came too late.
        public var skipped: Int { slot.skipped }

        /// The next output, waited for; nil where the task was cancelled.
        public mutating func next() async -> Output? { await next(isolation: nil) }

        /// The next output, waited for; nil where the task was cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Never) -> Output? {
            await slot.next(isolation: actor)
        }
    }
}

private final class TakenFlag: Sendable {
    private let isSet = Atomic(false)

    /// Whether it was not set before.
    func set() -> Bool { !isSet.exchange(true, ordering: .relaxed) }
}

/// Those who hear the outputs of one store.
final class OutputHub<Output: Sendable>: Sendable {
    private struct Listener: Sendable {
        weak var owner: (any AnyObject & Sendable)?
        let take: @Sendable (Output) -> Void
    }

    private let listeners = StateLock<[Listener]>([])

    /// Says `output` to everybody, in the order in which they came.
    func send(_ output: Output) {
        let all = listeners.withLock { listeners in
            listeners.removeAll { $0.owner == nil }
            return listeners
        }
        for listener in all where listener.owner != nil { listener.take(output) }
    }

    func slot() -> ReaderSlot<Output> {
        let slot = ReaderSlot<Output>(limit: StoreOutputs<Output>.bufferLimit) { outputs, output in
            _ = outputs.popFirst()
            outputs.append(output)
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
        listeners.withLock { listeners in
            listeners.removeAll { $0.owner == nil }
            listeners.append(Listener(owner: owner, take: take))
        }
    }
}
