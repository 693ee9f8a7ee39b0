import StateEngine
import StateStore
import StateTestSupport
import StateTesting
import Testing

struct TestStoreTests {
    private func failure(_ body: () async throws -> Void) async -> String {
        do {
            try await body()
            return "nothing was thrown"
        } catch {
            return "\(error)"
        }
    }

    private func makeStore(timeout: Duration = .seconds(10)) -> TestStore<Counter> {
        TestStore(Counter.State(), reducer: Counter(), clock: TestClock(), timeout: timeout)
    }

    @Test func `another state than the test said is shown line by line`() async {
        let store = makeStore()
        let shown = await failure { try await store.send(.set(2)) { $0.count = 3 } }
        #expect(
            shown == """
                unexpected state after input set(2): (- expected, + actual)
                  State (
                -   count: 3
                +   count: 2
                    loaded: []
                  )
                """
        )
    }

    @Test func `another feedback or output than the test said is a failure`() async throws {
        let store = makeStore()
        try await store.send(.load("a", after: .zero))
        let feedback = await failure { try await store.receive(.loaded("b")) }
        #expect(feedback.hasPrefix("unexpected message"))
        try await store.send(.say("a")) { $0.loaded = ["a"] }
        let output = await failure { try await store.receive(output: "b") }
        #expect(output.contains("- \"b\"\n+ \"a\""))
    }

    @Test func `what the test did not go through is a failure`() async throws {
        let store = makeStore()
        try await store.send(.say("b"))
        try await store.send(.load("a", after: .zero))
        let atEnd = await failure { try await store.finish() }
        #expect(atEnd.contains("loaded(\"a\")") && atEnd.contains("[\"b\"]"))
        let next = await failure { try await store.send(.increment) }
        #expect(next.hasPrefix("a message was handled that the test did not receive"))
    }

    @Test func `what does not come, and an effect that goes on, are failures in time`() async throws
    {
        let store = makeStore(timeout: .milliseconds(20))
        let none = await failure { try await store.receive(.tick) }
        #expect(none.contains("did not arrive within"))
        try await store.send(.hang)
        let hanging = await failure { try await store.finish() }
        #expect(hanging.hasPrefix("effects still run after"))
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
