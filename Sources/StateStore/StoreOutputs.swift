import StateContainers
import StateEngine

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
    private let first: OutputSlot<Output>
    private let isTaken = TakenMark()

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
        let slot: OutputSlot<Output>

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

private final class TakenMark: Sendable {
    private let isSet = StateLock(false)

    /// Whether it was not set before.
    func set() -> Bool {
        isSet.withLock { isSet in
            defer { isSet = true }
            return !isSet
        }
    }
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

    func slot() -> OutputSlot<Output> {
        let slot = OutputSlot<Output>()
        add(slot) { [weak slot] in slot?.put($0) }
        return slot
    }

    func observe(_ body: @escaping @Sendable (Output) -> Void) -> any AnyObject & Sendable {
        let owner = TakenMark()
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

/// What one reader has not been asked for yet.
final class OutputSlot<Output: Sendable>: Sendable {
    private struct Buffer {
        var outputs = Ring<Output>()
        var reader: CheckedContinuation<Output?, Never>?
        var skipped = 0
        var isEnded = false
    }

    private let buffer = StateLock(Buffer())

    var skipped: Int { buffer.withLock { $0.skipped } }

    func put(_ output: Output) {
        let reader = buffer.withLock { buffer -> CheckedContinuation<Output?, Never>? in
            if let reader = buffer.reader.take() { return reader }
            guard !buffer.isEnded else { return nil }
            if buffer.outputs.count == StoreOutputs<Output>.bufferLimit {
                _ = buffer.outputs.popFirst()
                buffer.skipped += 1
            }
            buffer.outputs.append(output)
            return nil
        }
        reader?.resume(returning: output)
    }

    func next(isolation: isolated (any Actor)? = #isolation) async -> Output? {
        await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: isolation) { wait($0) }
        } onCancel: {
            end()
        }
    }

    private func wait(_ reader: CheckedContinuation<Output?, Never>) {
        let (isNow, output) = buffer.withLock { buffer -> (Bool, Output?) in
            precondition(buffer.reader == nil, "two tasks read one stream at once")
            if let output = buffer.outputs.popFirst() { return (true, output) }
            if buffer.isEnded { return (true, nil) }
            buffer.reader = reader
            return (false, nil)
        }
        if isNow { reader.resume(returning: output) }
    }

    private func end() {
        let reader = buffer.withLock { buffer in
            buffer.isEnded = true
            return buffer.reader.take()
        }
        reader?.resume(returning: nil)
    }
}
