import StateContainers
import Testing

/// No hidden deadlock: what touches a container in the body of a `modify` ends the process and names both.
struct DeadlockTests {
    @Test func `No hidden deadlock: reading another container in a body traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let (outer, inner) = (State(0, key: "outer/a"), State(1, key: "inner/b"))
            outer.modify { $0 = inner.value }
        }
        #expect(result.map { said($0, "outer/a", "inner/b", "withTransaction") } == true)
    }

    @Test func `No hidden deadlock: modifying another container in a body traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let (outer, inner) = (State(0, key: "outer/a"), State(1, key: "inner/b"))
            outer.modify { _ in inner.modify { $0 += 1 } }
        }
        #expect(result.map { said($0, "outer/a", "inner/b", "withTransaction") } == true)
    }

    @Test func `No hidden deadlock: its own container in a body traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let state = MonitoredState(0, key: "own/a")
            let observation = state.observe(on: .inline) { _ in }
            state.modify { $0 = state.value + 1 }
            observation.cancel()
        }
        #expect(result.map { said($0, "'own/a'", "withTransaction") } == true)
    }

    @Test func `No hidden deadlock: observing another container in a body traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let (outer, inner) = (State(0, key: "outer/a"), MonitoredState(1, key: "inner/b"))
            outer.modify { _ in inner.observe { _ in }.cancel() }
        }
        #expect(result.map { said($0, "outer/a", "inner/b", "withTransaction") } == true)
    }

    @Test
    func `No hidden deadlock: a part that touches another container when it is observed traps`()
        async
    {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            struct Root: Sendable {
                static let other = State(1, key: "inner/b")
                var part: Int {
                    get { Root.other.value }
                    set {}
                }
            }
            let state = MonitoredState(Root(), key: "outer/a")
            state.scope(\.part).observe { _ in }.cancel()
        }
        #expect(result.map { said($0, "outer/a", "inner/b", "withTransaction") } == true)
    }
}
