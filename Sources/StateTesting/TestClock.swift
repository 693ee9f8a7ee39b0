import StateEngine

/// A clock that stands still until a test advances it.
///
/// ```swift
/// let clock = TestClock()
/// let store = Store(Search.State(), reducer: Search(), clock: clock)
/// store.send(.typed("a"))
/// await clock.advance(by: .milliseconds(300))
/// ```
public final class TestClock: Clock {
    /// A time of this clock.
    public struct Instant: InstantProtocol {
        /// Since the clock was made.
        public let offset: Duration

        /// The instant after so long.
        public func advanced(by duration: Duration) -> Instant {
            Instant(offset: offset + duration)
        }

        /// How long it is until `other`.
        public func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Whether this one is earlier.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct Sleeper {
        let number: Int
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct Time {
        var now = Instant(offset: .zero)
        var sleepers: [Sleeper] = []
        var nextNumber = 0
    }

    private let time = StateLock(Time())

    /// A clock at 0.
    public init() {}

    /// The time up to which it was advanced.
    public var now: Instant { time.withLock { $0.now } }

    /// The clock has no smallest step.
    public var minimumResolution: Duration { .zero }

    /// How many tasks sleep.
    public var sleeperCount: Int { time.withLock { $0.sleepers.count } }

    /// Sleeps until a test has advanced the clock so far; not at all where it has.
    ///
    /// - Throws: `CancellationError`.
    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let number = time.withLock { time in
            time.nextNumber += 1
            return time.nextNumber
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = time.withLock { time in
                    // Cancelled before: the handler found nobody.
                    if Task.isCancelled || deadline <= time.now { return true }
                    let sleeper = Sleeper(
                        number: number,
                        deadline: deadline,
                        continuation: continuation
                    )
                    time.sleepers.append(sleeper)
                    return false
                }
                if isOver { continuation.resume() }
            }
            try Task.checkCancellation()
        } onCancel: {
            let sleeper = time.withLock { time -> Sleeper? in
                let place = time.sleepers.firstIndex { $0.number == number }
                return place.map { time.sleepers.remove(at: $0) }
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Lets so much time pass: who sleeps is woken in the order of the deadlines, those of one in the order in which they lay down.
    ///
    /// After each one others get a chance to run; a sleeper that comes too late is not kept waiting.
    public func advance(by duration: Duration) async {
        let end = now.advanced(by: duration)
        while wakeNext(until: end) { await Self.letOthersRun() }
        time.withLock { $0.now = end }
        await Self.letOthersRun()
    }

    /// Lets time pass until nobody sleeps, or `limit` sleeps have ended: a timer sleeps again and again.
    ///
    /// - Returns: Whether nobody sleeps.
    @discardableResult
    public func run(limit: Int = 1_000) async -> Bool {
        await Self.letOthersRun()
        for _ in 0..<limit {
            guard wakeNext(until: nil) else { return true }
            await Self.letOthersRun()
        }
        return sleeperCount == 0
    }

    /// Wakes the one whose deadline is next; false where there is none until `end`.
    private func wakeNext(until end: Instant?) -> Bool {
        let sleeper = time.withLock { time -> Sleeper? in
            let order = { (left: Sleeper, right: Sleeper) in
                (left.deadline.offset, left.number) < (right.deadline.offset, right.number)
            }
            guard let next = time.sleepers.min(by: order) else { return nil }
            if let end, next.deadline > end { return nil }
            time.sleepers.removeAll { $0.number == next.number }
            time.now = max(time.now, next.deadline)
            return next
        }
        sleeper?.continuation.resume()
        return sleeper != nil
    }

    private static func letOthersRun() async {
        for _ in 0..<16 { await Task.yield() }
    }
}
