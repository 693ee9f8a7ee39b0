import StateEngine
import Synchronization

/// A clock whose time changes only when a test advances it.
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
        /// The time since the clock was made.
        public let offset: Duration

        /// The instant `duration` later.
        public func advanced(by duration: Duration) -> Instant {
            Instant(offset: offset + duration)
        }

        /// The time from this instant to `other`.
        public func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Whether `left` is earlier.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct Sleeper {
        let number: Int
        let deadline: Instant
        let counter: SleeperCounter?
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct Time {
        var now = Instant(offset: .zero)
        private(set) var sleepers: [Sleeper] = []
        var nextNumber = 0

        mutating func add(_ sleeper: Sleeper) {
            sleepers.append(sleeper)
            sleeper.counter?.add(1)
        }

        mutating func remove(_ number: Int) -> Sleeper? {
            let place = sleepers.firstIndex { $0.number == number }
            let sleeper = place.map { sleepers.remove(at: $0) }
            sleeper?.counter?.add(-1)
            return sleeper
        }
    }

    /// Counts the sleepers among the effects of one test store, on whichever clock.
    @TaskLocal static var counter: SleeperCounter?

    private let time = StateLock(Time())

    /// Makes a clock at 0.
    public init() {}

    /// The time to which the clock was advanced.
    public var now: Instant { time.withLock { $0.now } }

    /// The clock has no smallest step.
    public var minimumResolution: Duration { .zero }

    /// How many tasks are sleeping.
    public var sleeperCount: Int { time.withLock { $0.sleepers.count } }

    /// Sleeps until a test has advanced the clock to `deadline`; returns at once if it has.
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
                    // Cancelled before: the cancellation handler found no sleeper.
                    if Task.isCancelled || deadline <= time.now { return true }
                    let sleeper = Sleeper(
                        number: number,
                        deadline: deadline,
                        counter: Self.counter,
                        continuation: continuation
                    )
                    time.add(sleeper)
                    return false
                }
                if isOver { continuation.resume() }
            }
            try Task.checkCancellation()
        } onCancel: {
            let sleeper = time.withLock { $0.remove(number) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Advances the time.
    ///
    /// Sleepers are woken in the order of their deadlines; those with the same deadline in the
    /// order in which they went to sleep.
    ///
    /// Before, and after each one, other tasks get a chance to run. After an effect of a test store the
    /// clock waits until the store's effects have ended, sleep again, or have done nothing for 0.1 s:
    /// then an effect that sleeps twice is asleep again when this returns. A sleeper whose deadline has
    /// passed does not wait.
    public func advance(by duration: Duration) async {
        await Self.letOthersRun()
        let end = now.advanced(by: duration)
        while let woken = wakeNext(until: end) { await Self.letRun(woken) }
        time.withLock { $0.now = end }
        await Self.letOthersRun()
    }

    /// Advances the time until nobody sleeps, or `limit` sleeps have ended, because a timer sleeps
    /// again and again.
    ///
    /// - Returns: Whether nobody sleeps.
    @discardableResult
    public func run(limit: Int = 1_000) async -> Bool {
        await Self.letOthersRun()
        for _ in 0..<limit {
            guard let woken = wakeNext(until: nil) else { return true }
            await Self.letRun(woken)
        }
        return sleeperCount == 0
    }

    /// Wakes the sleeper with the next deadline; nil if there is none until `end`.
    private func wakeNext(until end: Instant?) -> Sleeper? {
        let sleeper = time.withLock { time -> Sleeper? in
            let order = { (left: Sleeper, right: Sleeper) in
                (left.deadline.offset, left.number) < (right.deadline.offset, right.number)
            }
            guard let next = time.sleepers.min(by: order) else { return nil }
            if let end, next.deadline > end { return nil }
            time.now = max(time.now, next.deadline)
            return time.remove(next.number)
        }
        sleeper?.continuation.resume()
        return sleeper
    }

    /// Lets a sleeper that was woken come to its next sleep, or to its end.
    private static func letRun(_ woken: Sleeper) async {
        guard let counter = woken.counter else { return await letOthersRun() }
        await counter.rest()
    }

    private static func letOthersRun() async {
        for _ in 0..<16 { await Task.yield() }
    }
}

/// How many effects of one test store sleep.
final class SleeperCounter: Sendable {
    private struct Rest: Sendable {
        let wait: @Sendable () async -> Void
    }

    private let sleepers = Atomic(0)
    private let restOfStore = StateLock<Rest?>(nil)

    /// Sets how to wait until the store's effects have ended or sleep.
    func connect(_ wait: @escaping @Sendable () async -> Void) {
        restOfStore.withLock { $0 = Rest(wait: wait) }
    }

    /// Waits until the store's effects have ended or sleep.
    func rest() async { await restOfStore.withLock { $0 }?.wait() }

    var count: Int { sleepers.load(ordering: .acquiring) }

    func add(_ number: Int) { sleepers.add(number, ordering: .acquiringAndReleasing) }
}
