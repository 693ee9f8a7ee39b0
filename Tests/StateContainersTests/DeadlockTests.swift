import StateContainers
import StateTestSupport
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

    @Test func `No hidden deadlock: a completion that waits for its keyspace traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let keyspace = try LocalKeyspace(backing: HeldBacking(isHeld: false))
            let state = try await PersistentState(0, key: "a", in: keyspace, codec: digits)
            let isDone = Observed(false)
            keyspace.submit([.set("b", [])]) { _ in
                _ = try? state.modify(1)
                isDone.update { $0 = true }
            }
            _ = isDone.wait { $0 }
        }
        #expect(result.map { said($0, "must not wait for it") } == true)
    }

    @Test func `No hidden deadlock: a container made where its keyspace tells a commit traps`()
        async
    {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let keyspace = try LocalKeyspace(backing: MemoryBacking())
            let isDone = Observed(false)
            let watch = keyspace.watch { event in
                guard case .commit = event else { return }
                _ = try? PersistentState(0, key: "late", in: keyspace, codec: digits)
                isDone.update { $0 = true }
            }
            watch.include([.everything])
            keyspace.submit([.set("b", [])]) { _ in }
            _ = isDone.wait { $0 }
        }
        #expect(result.map { said($0, "must not wait for it") } == true)
    }

    @Test func `No hidden deadlock: a completion that closes its keyspace traps`() async {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let keyspace = try LocalKeyspace(backing: HeldBacking(isHeld: false))
            let isDone = Observed(false)
            keyspace.submit([.set("b", [])]) { _ in
                keyspace.close()
                isDone.update { $0 = true }
            }
            _ = isDone.wait { $0 }
        }
        #expect(result.map { said($0, "must not wait for it") } == true)
    }

    @Test func `No hidden deadlock: a container made and modified in a listener is one as any`()
        throws
    {
        let keyspace = try LocalKeyspace(backing: HeldBacking(isHeld: false))
        defer { keyspace.close() }
        let first = try PersistentState(0, key: "a", in: keyspace, codec: digits)
        let seen = Observed<[Int]>([])
        let observations = [StateQueue.inline, .notifier].map { queue in
            first.observe(on: queue, initial: false) { change in
                let second = try? PersistentState(0, key: "b", in: keyspace, codec: digits)
                let result = try? second?.modify { value -> Int in
                    value += 1
                    return value
                }
                seen.update { $0.append(result ?? -1) }
            }
        }
        try first ~> 1
        #expect(seen.wait { $0.count == 2 })
        #expect(seen.current.sorted() == [1, 2])
        for observation in observations { observation.cancel() }
    }
}
