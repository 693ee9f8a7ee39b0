import Dispatch
import StateContainers
import StateSQLite
import StateTesting

// MARK: API responses

/// The state of something that is loaded.
private enum Loadable: Hashable, Sendable {
    case idle, loading
    case loaded([String])
    case failed(String)
}

extension Example {
    static let apiResponses = Example(
        name: "api-responses",
        summary:
            "a server's answers in a container; a late answer does not replace a newer one"
    ) { checks in
        let news = MonitoredState(Loadable.idle, key: "news")
        let shown = MonitoredState([Loadable](), key: "news/shown")
        let view = news.observe(on: .inline) { change in shown ~> { $0.append(change.new) } }
        // Each request starts with its own revision; its answer counts while that revision is the
        // newest.
        let slow = news.modify(.loading)
        let fast = news.modify(.loading)
        try news.modify(.loaded(["fast"]), ifRevision: fast)
        checks.expect(.conflict, "the late answer is refused") {
            try news.modify(.loaded(["slow"]), ifRevision: slow)
        }
        checks.expect(news.value == .loaded(["fast"]), "the newer one stays")
        let failing = news.modify(.loading)
        try news.modify(.failed("no network"), ifRevision: failing)
        view.cancel()
        checks.expect(
            shown.value == [
                .idle, .loading, .loading, .loaded(["fast"]), .loading, .failed("no network"),
            ],
            "the view got each step"
        )
    }
}

// MARK: Caching

/// Values with an expiry.
///
/// What it adds is constant: the proof of `@unchecked Sendable`.
private final class Cache<Value: Sendable>:
    State<[String: (value: Value, end: TestClock.Instant)]>, @unchecked Sendable
{
    let lifetime: Duration
    let clock: TestClock

    init(_ key: Key, for lifetime: Duration, clock: TestClock) {
        self.lifetime = lifetime
        self.clock = clock
        super.init([:], key: key)
    }

    /// The value of `name`; made if there is no valid one.
    func value(of name: String, or make: () async -> Value) async -> Value {
        let now = clock.now
        if let found = value[name], now < found.end { return found.value }
        let made = await make()
        modify { [lifetime] entries in
            entries = entries.filter { now < $0.value.end }
            entries[name] = (made, now.advanced(by: lifetime))
        }
        return made
    }
}

extension Example {
    static let caching = Example(
        name: "caching",
        summary: "a cache with an expiry: a container of values with their ends"
    ) { checks in
        let clock = TestClock()
        let cache = Cache<Int>("cache/squares", for: .seconds(60), clock: clock)
        let computed = StateLock(0)
        func square(_ number: Int) async -> Int {
            await cache.value(of: "\(number)") {
                computed.withLock { $0 += 1 }
                return number * number
            }
        }
        checks.expect(await square(3) == 9, "3 squared is 9")
        checks.expect(await square(3) == 9, "3 squared is still 9")
        checks.expect(computed.withLock { $0 } == 1, "it was computed once")
        await clock.advance(by: .seconds(61))
        checks.expect(await square(4) == 16, "a minute later, another square is requested")
        checks.expect(cache.value.count == 1, "the expired value was removed")
        checks.expect(await square(3) == 9, "3 squared is requested again")
        checks.expect(computed.withLock { $0 } == 3, "it was computed again")
    }
}

// MARK: Preferences

private struct Preferences: Codable, Hashable, Sendable {
    var fontSize = 12
    var language = "en"
}

extension Example {
    static let preferences = Example(
        name: "preferences",
        summary: "preferences in the app's own database; a view wakes for one of them"
    ) { checks in
        let scratch = try Scratch()
        func open() throws -> SQLiteState<Preferences> {
            let database = try SQLiteDatabase(path: scratch.path(of: "app.db"))
            return try SQLiteState(Preferences(), key: "preferences", in: database)
        }
        func firstRun() async throws {
            let preferences = try open()
            checks.expect(preferences.origin == .defaulted, "nothing is stored at first")
            let sizes = MonitoredState([Int](), key: "sizes")
            let view = preferences.scope(\.fontSize).observe { change in
                sizes ~> { $0.append(change.new) }
            }
            _ = try await sizes.wait(timeout: .seconds(20)) { $0 == [12] }
            try await preferences ~> { $0.language = "de" }
            try await preferences ~> { $0.fontSize = 14 }
            let seen = try await sizes.wait(timeout: .seconds(20)) { $0.count == 2 }
            checks.expect(seen == [12, 14], "the view of the size does not wake for the language")
            view.cancel()
        }
        try await firstRun()
        let again = try open()
        checks.expect(
            again.value == Preferences(fontSize: 14, language: "de"),
            "both are there at the next start"
        )
        checks.expect(again.origin == .stored, "they come from storage")
    }
}

// MARK: Analytics

/// Counts changes at its own pace: changes that arrive meanwhile are counted, not kept.
private final class Analytics: StateListener {
    let counts = MonitoredState((calls: 0, skipped: 0), key: "analytics")
    let upload = DispatchSemaphore(value: 0)

    func stateModified<Value, Failure>(
        _ state: StateContainer<Value, Failure>,
        _ change: StateChange<Value>
    ) {
        upload.wait()
        counts ~> { $0 = ($0.calls + 1, $0.skipped + change.skipped) }
        upload.signal()
    }
}

extension Example {
    static let analytics = Example(
        name: "analytics",
        summary: "a sink of analytics as a listener, which counts what it skipped"
    ) { checks in
        let clicks = MonitoredState(0, key: "clicks")
        let analytics = Analytics()
        clicks.attach(listener: analytics)
        for _ in 0..<1_000 { clicks ~> { $0 += 1 } }
        checks.expect(clicks.value == 1_000, "a hanging upload delays no click")
        analytics.upload.signal()
        let counts = try await analytics.counts.wait(timeout: .seconds(20)) {
            $0.calls + $0.skipped == 1_000
        }
        print("  \(counts.calls) calls, \(counts.skipped) skipped")
        checks.expect(counts.calls <= 2, "one slot, so at most two calls")
        checks.expect(counts.skipped >= 998, "all other clicks are counted")
    }
}
