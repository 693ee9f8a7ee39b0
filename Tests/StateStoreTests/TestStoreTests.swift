import StateEngine
import StateStore
import StateTestSupport
import StateTesting
import Testing

struct TestStoreTests {
    private static func makeStore(
        clock: TestClock = TestClock(),
        timeout: Duration = .seconds(60),
        line: Int = #line
    ) -> TestStore<Counter> {
        TestStore(Counter.State(), reducer: Counter(), clock: clock, timeout: timeout, line: line)
    }

    // MARK: What a failure says

    @Test func `another state than the test said is shown line by line`() async {
        let shown = await failure {
            try await Self.makeStore().send(.set(2)) { $0.count = 3 }
        }
        #expect(
            shown.hasSuffix(
                """
                : unexpected state after input set(2): (- expected, + actual)
                  State (
                -   count: 3
                +   count: 2
                    loaded: []
                  )
                """
            )
        )
    }

    @Test func `a failure outside of Swift Testing names the file and the line`() async {
        let line = #line + 2
        let shown = await failure {
            try await Self.makeStore().send(.set(2)) { $0.count = 3 }
        }
        #expect(shown.hasPrefix("StateStoreTests/TestStoreTests.swift:\(line): unexpected state"))
    }

    @Test func `another feedback than the test said is a failure`() async {
        let shown = await failure {
            let store = Self.makeStore()
            try await store.send(.load("a", after: .zero))
            try await store.receive(.loaded("b"))
        }
        #expect(shown.hasSuffix("\n- loaded(\"b\")\n+ loaded(\"a\")"))
    }

    @Test func `another output than the test said is a failure`() async {
        let shown = await failure {
            let store = Self.makeStore()
            try await store.send(.say("a"))
            try await store.receive(output: "b")
        }
        #expect(shown.hasSuffix("\n- \"b\"\n+ \"a\""))
    }

    @Test func `what the test did not check is a failure at its end`() async {
        let shown = await failure {
            let store = Self.makeStore()
            try await store.send(.say("b"))
            try await store.send(.load("a", after: .zero))
            try await store.finish()
        }
        #expect(shown.hasSuffix(#"did not check: output "b", feedback loaded("a")"#))
    }

    @Test func `what cannot come any more is a failure at once`() async {
        let shown = await failure {
            let store = Self.makeStore()
            try await store.send(.say("b"))
            try await store.receive(.tick)
        }
        #expect(shown.contains("feedback tick cannot arrive, because all effects have ended"))
        #expect(shown.contains(#"instead arrived: output "b""#))
    }

    @Test func `what does not come in time is a failure that says what did, and what still runs`()
        async
    {
        let shown = await failure {
            let store = Self.makeStore(timeout: .milliseconds(20))
            try await store.send(.say("b"))
            try await store.send(.hang)
            try await store.receive(.tick)
        }
        #expect(shown.contains(#"did not arrive within 0.02 seconds; instead arrived: output "b""#))
        #expect(shown.contains("effects that run: 1, of these asleep on a TestClock: 1"))
    }

    @Test func `an effect that goes on is a failure in time`() async {
        let shown = await failure {
            let store = Self.makeStore(timeout: .milliseconds(20))
            try await store.send(.hang)
            try await store.finish()
        }
        #expect(
            shown.contains("effects still run after 0.02 seconds; effects that run: 1, of these")
        )
    }

    // MARK: Where it is reported

    @Test func `a failure is one issue, at the line of the call`() async throws {
        let line = #line + 3
        let found = try await issues {
            let store = Self.makeStore()
            try await store.send(.set(2)) { $0.count = 3 }
            try await store.send(.increment)
        }
        #expect(found.map(\.line) == [line])
        #expect(found.first?.text.hasPrefix("unexpected state after input set(2)") == true)
    }

    @Test func `a test that has failed is not reported again for what it left`() async throws {
        let line = #line + 4
        let found = try await issues {
            let store = Self.makeStore()
            try await store.send(.load("a", after: .zero))
            try await store.send(.increment) { $0.count = 1 }
        }
        #expect(found.map(\.line) == [line])
    }

    @Test(arguments: [
        (Counter.Input.say("a"), #"output "a""#),
        (.load("a", after: .zero), #"feedback loaded("a")"#),
    ])
    func `an output or a feedback that a test leaves is an issue without finish(), too`(
        input: Counter.Input,
        left: String
    ) async throws {
        let line = #line + 2
        let found = try await issues {
            let store = Self.makeStore()
            try await store.send(input)
        }
        #expect(found == [Found(line: line, text: "this test ended and did not check: \(left)")])
    }

    @Test func `effects that a test does not wait for are an issue, also when they send nothing`()
        async throws
    {
        let found = try await issues {
            let store = Self.makeStore()
            try await store.send(.hang)
        }
        #expect(
            found.map(\.text)
                == ["this test started effects and did not wait for them: end it with finish()"]
        )
    }

    @Test func `finish() before the last effect is not enough`() async throws {
        let found = try await issues {
            let store = Self.makeStore()
            try await store.finish()
            try await store.send(.search("a"))
        }
        #expect(found.count == 1)
    }

    @Test func `a test without effects needs no finish()`() async throws {
        let store = Self.makeStore()
        try await store.send(.increment) { $0.count = 1 }
        try await store.send(.say("a"))
        try await store.receive(output: "a")
    }

    @Test func `what an XCTest does not check ends the process with the line of its store`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            await Task.detached {
                let store = TestStore(Counter.State(), reducer: Counter(), line: 7)
                try? await store.send(.say("a"))
            }.value
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("TestStoreTests.swift:7: this test ended and did not check: output"))
    }

    // MARK: Order

    @Test func `a message that is sent before a feedback is received fails in each of 500 runs`()
        async
    {
        for _ in 0..<500 {
            let shown = await failure {
                let store = Self.makeStore()
                try await store.send(.load("a", after: .zero))
                try await store.send(.increment) { $0.count = 1 }
            }
            guard shown.contains(#"before the test receives feedback loaded("a")"#) else {
                Issue.record("\(shown)")
                return
            }
        }
    }

    @Test func `an effect sleeps when send returns, so the next advance wakes it`() async throws {
        for _ in 0..<100 {
            let clock = TestClock()
            let store = Self.makeStore(clock: clock)
            try await store.send(.load("a", after: .seconds(1)))
            #expect(clock.sleeperCount == 1)
            await clock.advance(by: .seconds(1))
            try await store.receive(.loaded("a")) { $0.loaded = ["a"] }
            try await store.finish()
        }
    }

    @Test func `an effect that waits for something else holds a message up for a moment only`()
        async throws
    {
        let gate = MonitoredState(false, key: "gate")
        let reducer = Reduce<Int, Bool, Int, Never> { state, message in
            switch message {
            case .input(true):
                return .run { send in
                    _ = try? await gate.wait(timeout: .seconds(20)) { $0 }
                    send(7)
                }
            case .input(false): state += 1
            case .feedback(let number): state += number
            }
            return .none
        }
        let store = TestStore(0, reducer: reducer, timeout: .seconds(60))
        try await store.send(true)
        try await store.send(false) { $0 = 1 }
        gate ~> true
        try await store.receive(7) { $0 = 8 }
        try await store.finish()
    }

    // MARK: What can be received

    private struct Lost: Error {}

    private enum Loading: Sendable {
        case ended(Result<[Int], any Error>)
        case half(Int)

        var isSuccess: Bool { if case .ended(.success) = self { true } else { false } }
        var isFailure: Bool { if case .ended(.failure) = self { true } else { false } }
        var half: Int? { if case .half(let number) = self { number } else { nil } }
    }

    private static let loading = Reduce<[Int], Bool, Loading, Never> { state, message in
        switch message {
        case .input(true): return .merge(.send(.half(1)), .send(.ended(.success([1, 2]))))
        case .input(false): return .send(.ended(.failure(Lost())))
        case .feedback(.half(let number)): state = [number]
        case .feedback(.ended(.success(let numbers))): state = numbers
        case .feedback(.ended(.failure)): state = []
        }
        return .none
    }

    @Test func `a feedback that cannot be compared is received by a condition or by its case`()
        async throws
    {
        let store = TestStore([], reducer: Self.loading)
        try await store.send(true)
        try await store.receive(\.half) { $0 = [1] }
        try await store.receive(where: \.isSuccess) { $0 = [1, 2] }
        try await store.send(false)
        try await store.receive(where: \.isFailure) { $0 = [] }
    }

    @Test func `a feedback of another case is a failure that shows it`() async {
        let byCase = await failure {
            let store = TestStore([], reducer: Self.loading)
            try await store.send(false)
            try await store.receive(\.half)
        }
        #expect(
            byCase.contains("feedback ended(") && byCase.contains("is not of the expected case")
        )
        let byCondition = await failure {
            let store = TestStore([], reducer: Self.loading)
            try await store.send(false)
            try await store.receive(where: \.isSuccess)
        }
        #expect(byCondition.contains("does not satisfy the condition"))
    }

    private struct Load: EffectOperation {
        let number: Int

        func run(_ send: Send<Int>) async {
            do { try await send.clock.sleep(for: .seconds(1)) } catch { return }
            send(number)
        }
    }

    @Test func `effects as objects are tested as those of closures are`() async throws {
        let clock = TestClock()
        let reducer = Reduce<Int, Int, Int, String> { state, message in
            switch message {
            case .input(let number): return .run(Load(number: number))
            case .feedback(let number):
                state = number
                return .output("done")
            }
        }
        let store = TestStore(0, reducer: reducer, clock: clock)
        try await store.send(4)
        await clock.advance(by: .seconds(1))
        try await store.receive(4) { $0 = 4 }
        try await store.receive(output: "done")
        try await store.finish()
    }

    @Test func `a store takes the clock of its scope`() async throws {
        let clock = TestClock()
        var dependencies = StateDependencies()
        dependencies.clock = clock
        try await StateScope.run(with: dependencies) {
            let store = TestStore(Counter.State(), reducer: Counter())
            try await store.send(.search("a"))
            await clock.advance(by: .seconds(1))
            try await store.receive(.loaded("a")) { $0.loaded = ["a"] }
            try await store.finish()
        }
    }

    // MARK: Actors

    @MainActor @Test func `a test on the main actor is written as any other`() async throws {
        var clicks = 0
        let clock = TestClock()
        let store = Self.makeStore(clock: clock)
        try await store.send(.increment) {
            clicks += 1
            $0.count = clicks
        }
        try await store.send(.load("a", after: .seconds(1)))
        await clock.advance(by: .seconds(1))
        try await store.receive(.loaded("a")) { $0.loaded = ["a"] }
        try await store.send(.say("b"))
        try await store.receive(output: "b")
        try await store.finish()
    }

    @MainActor @Test func `what does not come on the main actor is a failure in time, too`()
        async throws
    {
        let found = try await issues {
            let store = Self.makeStore(timeout: .milliseconds(20))
            try await store.send(.hang)
            try await store.receive(.tick)
        }
        #expect(found.count == 1)
        #expect(found.first?.text.contains("did not arrive within") == true)
    }

    @Test func `sleepers wake in the order of their deadlines`() async {
        let clock = TestClock()
        let woken = MonitoredState([Int](), key: "woken")
        let sleepers = [3, 1, 2].map { second in
            Task {
                try await clock.sleep(for: .seconds(second))
                woken.modify { $0.append(second) }
            }
        }
        while clock.sleeperCount < 3 { await Task.yield() }
        await clock.advance(by: .milliseconds(500))
        #expect(woken.value == [])
        #expect(clock.sleeperCount == 3)
        // One at a time: two that were woken run on two threads.
        for second in 1...3 {
            await clock.advance(by: .seconds(1))
            _ = try? await woken.wait(timeout: .seconds(20)) { $0.count == second }
        }
        #expect(woken.value == [1, 2, 3])
        for sleeper in sleepers { #expect((try? await sleeper.value) != nil) }
        #expect(await clock.run())
    }
}

/// Effects that sleep more than once, for a clock that is advanced by hand.
struct SleepingTwiceTests {
    private struct Search: Reducer {
        func reduce(
            _ message: Message<String, String>,
            into state: inout String
        ) -> Effect<String, Never> {
            switch message {
            case .input(let text):
                return .debounce(
                    id: "search",
                    for: .milliseconds(300),
                    .run { send in
                        // As a computation before the answer, on other threads.
                        for _ in 0..<40 { await Task.detached {}.value }
                        do { try await send.clock.sleep(for: .seconds(1)) } catch { return }
                        send(text)
                    }
                )
            case .feedback(let text): state = text
            }
            return .none
        }
    }

    @Test(arguments: 0..<20) func `an effect that sleeps again is asleep when advance returns`(
        number: Int
    ) async throws {
        let clock = TestClock()
        let store = TestStore("", reducer: Search(), clock: clock)
        try await store.send("a")
        await clock.advance(by: .milliseconds(300))
        #expect(clock.sleeperCount == 1)
        await clock.advance(by: .seconds(1))
        try await store.receive("a") { $0 = "a" }
        try await store.finish()
    }
}
