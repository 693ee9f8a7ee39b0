import StateEngine
import StateStore

/// A store under test, and what happened in it that the test has not checked.
///
/// Only one task may use it. Its effects are on tasks of their own, and retain the events only.
final class StoreRecording<R: Reducer, Event: Sendable & CustomStringConvertible>: Sendable {
    private struct Log: Sendable {
        var state: R.State
        /// In their true order: the state of a commit comes before the outputs of its effect.
        var events: [Event] = []
        var eventCount = 0
    }

    private final class Events: Sendable {
        let log: StateLock<Log>

        init(_ state: R.State) { log = StateLock(Log(state: state)) }

        func append(_ event: (inout Log) -> Event?) {
            log.withLock { log in
                guard let event = event(&log) else { return }
                log.events.append(event)
                log.eventCount += 1
            }
        }
    }

    /// What the test has done.
    private struct Progress: Sendable {
        var sent: [Sent] = []
        var hasFailed = false
        /// How many operations had been started when `finish()` ended.
        var awaitedOperations = 0
    }

    let store: Store<R>
    private let events: Events
    private let listening: any AnyObject & Sendable
    private let sleepers = SleeperCounter()
    private let progress = StateLock(Progress())
    private let timeout: Duration
    private let site: CallSite
    private let isInTest = CallSite.isInTest

    /// How long effects may do nothing that can be seen until they count as waiting for something.
    private static var quietTime: Duration { .milliseconds(100) }
    /// How often they must have had a turn in that time: other tests may keep all threads busy.
    private static var quietTurns: Int { 32 }
    /// How many turns effects get that go on and on.
    private static var turnLimit: Int { 1_000 }

    /// Makes a store and records it.
    ///
    /// - Parameters:
    ///   - state: The initial state.
    ///   - reducer: The reducer to test.
    ///   - clock: The clock of the store.
    ///   - timeout: How long to wait for an event, in real time.
    ///   - site: Where the test made the store.
    ///   - step: The event of a handled message, with the states before and after it.
    ///   - output: The event of an output.
    init(
        _ state: R.State,
        reducer: R,
        clock: any Clock<Duration>,
        timeout: Duration,
        at site: CallSite,
        step: @escaping @Sendable (Message<R.Input, R.Feedback>, R.State, R.State) -> Event?,
        output: @escaping @Sendable (R.Output) -> Event
    ) {
        let events = Events(state)
        let container = MonitoredState<R.State>(state, key: "store")
        store = Store(in: container, reducer: reducer, clock: clock) { message, state in
            events.append { log in
                defer { log.state = state }
                return step(message, log.state, state)
            }
        }
        listening = store.outputStream.observe { value in events.append { _ in output(value) } }
        self.events = events
        self.timeout = timeout
        self.site = site
        sleepers.connect { [weak self] in try? await self?.rest() }
    }

    deinit {
        guard !progress.withLock({ $0.hasFailed }) else { return }
        if !unchecked.isEmpty {
            site.record("this test ended and did not check: \(list)", isInTest: isInTest)
        } else if store.operationCounts.started > progress.withLock({ $0.awaitedOperations }) {
            site.record(
                "this test started effects and did not wait for them: end it with finish()",
                isInTest: isInTest
            )
        }
    }

    /// The events that the test has not checked.
    var unchecked: [Event] { events.log.withLock { $0.events } }

    private var list: String { unchecked.map(\.description).joined(separator: ", ") }

    /// Notes that the test has failed, and reports it.
    ///
    /// - Returns: The error to throw.
    func failure(_ message: String, at site: CallSite) -> any Error {
        progress.withLock { $0.hasFailed = true }
        return site.failure(message)
    }

    // MARK: Steps

    /// Sends `input` to the store.
    func send(_ input: R.Input) -> Sent {
        let sent = TestClock.$counter.withValue(sleepers) { store.send(input) }
        progress.withLock { $0.sent.append(sent) }
        return sent
    }

    /// Waits until the effects have ended or sleep on a test clock.
    ///
    /// An effect that does neither costs ``quietTime``: it waits for something else.
    nonisolated(nonsending) func rest() async throws {
        var (seen, since) = (activity, ContinuousClock.now)
        var (turns, quietTurns) = (0, 0)
        _ = try await poll(for: nil) {
            if isFinished { return true }
            let now = activity
            if now.running > 0, now.sleeping >= now.running { return true }
            if now != seen { (seen, since, quietTurns) = (now, .now, 0) }
            turns += 1
            quietTurns += 1
            let isQuiet = since.duration(to: .now) > Self.quietTime
            return quietTurns > Self.quietTurns && isQuiet || turns > Self.turnLimit
        }
    }

    /// Waits for an event, and takes it.
    nonisolated(nonsending) func next<Element: Sendable>(
        _ what: @autoclosure () -> String,
        at site: CallSite,
        _ take: (inout [Event]) -> Element?
    ) async throws -> Element {
        var element: Element?
        _ = try await poll(for: timeout) {
            // Read first: a message that is finished has been recorded.
            let isLast = isFinished
            element = events.log.withLock { take(&$0.events) }
            return element != nil || isLast
        }
        if let element { return element }
        let rest = unchecked.isEmpty ? "nothing else arrived" : "instead arrived: \(list)"
        throw failure(
            isFinished
                ? "\(what()) cannot arrive, because all effects have ended; \(rest)"
                : "\(what()) did not arrive within \(timeout); \(rest); \(underWay)",
            at: site
        )
    }

    /// Waits until all effects have ended; fails if the test has not checked everything.
    nonisolated(nonsending) func finish(at site: CallSite) async throws {
        guard try await poll(for: timeout, until: { isFinished }) else {
            throw failure("effects still run after \(timeout); \(underWay)", at: site)
        }
        for sent in progress.withLock({ $0.sent }) {
            do { try await sent.finished() } catch {
                throw failure("a message was refused: \(error)", at: site)
            }
        }
        guard unchecked.isEmpty else { throw failure("the test did not check: \(list)", at: site) }
        let started = store.operationCounts.started
        progress.withLock { $0.awaitedOperations = started }
    }

    // MARK: Waiting

    private struct Activity: Equatable {
        var events, running, started, sleeping: Int
    }

    private var activity: Activity {
        // Order matters: who wakes in between then counts as running, not as asleep.
        let (running, started) = store.operationCounts
        let sleeping = sleepers.count
        let events = events.log.withLock { $0.eventCount }
        return Activity(events: events, running: running, started: started, sleeping: sleeping)
    }

    /// Whether the messages, their effects, and what these sent are done.
    ///
    /// A view of the store sends messages that the test did not: their operations count, too.
    private var isFinished: Bool {
        store.operationCounts.running == 0
            && progress.withLock { $0.sent }.allSatisfy(\.isFinished)
    }

    private var underWay: String {
        let now = activity
        return "effects that run: \(now.running), of these asleep on a TestClock: \(now.sleeping)"
    }

    /// Looks again and again until `isDone`, for at most `limit`.
    ///
    /// What ends a wait here has no event: an effect ends, lies down to sleep, or waits for
    /// something that the store does not know.
    ///
    /// - Returns: Whether `isDone` was true.
    /// - Throws: `CancellationError`.
    private nonisolated(nonsending) func poll(
        for limit: Duration?,
        until isDone: () -> Bool
    ) async throws -> Bool {
        let start = ContinuousClock.now
        var turns = 0
        while !isDone() {
            if let limit, start.duration(to: .now) >= limit { return false }
            turns += 1
            do { try await Self.giveTurn(turns) } catch {
                progress.withLock { $0.hasFailed = true }
                throw error
            }
        }
        return true
    }

    /// Returns when the tasks that were ready have had a turn: its own comes behind theirs.
    @concurrent
    private static func giveTurn(_ number: Int) async throws {
        guard number <= quietTurns else { return try await Task.sleep(for: .milliseconds(1)) }
        await Task.yield()
        try Task.checkCancellation()
    }
}
