import CLinux
import StateEngine
import StateStore
import StateTestSupport
import Testing

struct StoreLawTests {
    /// Keeps of each sender the last number and whether one was out of order.
    private struct Senders: Reducer {
        struct State: Sendable {
            var last = [0, 0, 0, 0]
            var count = 0
            var isOrdered = true
        }

        func reduce(
            _ message: Message<(sender: Int, number: Int), Never>,
            into state: inout State
        ) -> Effect<Never, Never> {
            guard case .input(let input) = message else { return .none }
            if state.last[input.sender] + 1 != input.number { state.isOrdered = false }
            state.last[input.sender] = input.number
            state.count += 1
            return .none
        }
    }

    @Test
    func
        `100,000 messages of 4 threads are handled once, in each thread's order, in bounded memory`()
        async
    {
        // In a process of its own: the heap is everybody's.
        await #expect(processExitsWith: .success) {
            let store = Store(Senders.State(), reducer: Senders())
            for number in 1...100 { store.send((0, number)) }
            let before = clinux_heap_byte_count()
            let peak = Observed(before)
            let threads = (0..<4).map { sender in
                let thread = WorkerThread(name: "sender")
                thread.start {
                    let first = sender == 0 ? 101 : 1
                    for number in first..<(first + 25_000) {
                        store.send((sender, number))
                        if number % 500 == 0 {
                            peak.update { $0 = max($0, clinux_heap_byte_count()) }
                        }
                    }
                }
                return thread
            }
            for thread in threads { thread.join() }
            // Behind all others.
            try await store.send((1, 25_001)).settled()
            #expect(store.count == 100_101)
            #expect(store.isOrdered)
            #expect(store.last == [25_100, 25_001, 25_000, 25_000])
            #expect(peak.current - before < 8 << 20)
        }
    }

    @Test func `the state after send shows the result`() {
        let store = Store(Counter.State(), reducer: Counter())
        store.send(.increment)
        #expect(store.count == 1)
        store.send(.set(7))
        #expect(store.state.count == 7)
    }

    @Test func `a message that a listener sends is handled after the one that is being told of`()
        async throws
    {
        let home = MonitoredState(Counter.State(), key: "counter")
        let store = Store(home, reducer: Counter())
        let observation = home.observe(on: .inline, initial: false) { [weak store] change in
            if change.new.count < 100 { store?.send(.increment) }
        }
        try await store.send(.increment).settled()
        // After 64 messages the notifier goes on.
        _ = try await home.wait(timeout: .seconds(20)) { $0.count == 100 }
        observation.cancel()
    }

    @Test func `a change from elsewhere comes on the state stream without a message`() async {
        let home = MonitoredState(Counter.State(), key: "counter")
        let store = Store(home, reducer: Counter())
        var states = store.stateStream.makeAsyncIterator()
        #expect(await states.next()?.count == 0)
        home.modify { $0.count = 9 }
        #expect(await states.next()?.count == 9)
    }

    @Test func `duplicates of an Equatable state are not sent`() async {
        let store = Store(Counter.State(), reducer: Counter())
        var states = store.stateStream.makeAsyncIterator()
        #expect(await states.next()?.count == 0)
        store.send(.set(0))
        var counts = store.stateStream.mapped { $0.count / 10 }.makeAsyncIterator()
        #expect(await counts.next() == 0)
        async let next = states.next()
        store.send(.set(5))
        #expect(await next?.count == 5)
        store.send(.set(11))
        #expect(await counts.next() == 1)
    }

    @Test
    func `an output is heard from subscription on, and beyond 64 the oldest go and are counted`()
        async
    {
        let store = Store(Counter.State(), reducer: Counter())
        store.send(.say("before"))
        let stream = store.outputStream
        for number in 1...70 { store.send(.say("\(number)")) }
        var outputs = stream.makeAsyncIterator()
        #expect(await outputs.next() == "7")
        #expect(stream.skipped == 6)
        for _ in 8...70 { _ = await outputs.next() }
        store.send(.say("after"))
        #expect(await outputs.next() == "after")
        #expect(outputs.skipped == 6)
    }

    @Test func `why it changed is the name of the message without its payload`() async {
        let home = MonitoredState(Counter.State(), key: "counter")
        let store = Store(home, reducer: Counter())
        let reasons = Observed<[String]>([])
        let observation = home.observe(on: .inline, initial: false) { change in
            reasons.update { $0.append(change.cause.reason) }
        }
        store.send(.increment)
        store.send(.set(4))
        #expect(reasons.current == ["increment", "set"])
        observation.cancel()
    }

    private enum Step: Sendable { case add(Int) }

    @Test func `why it changed is known of a store in a keyspace too`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let home = try PersistentState(0, key: "count", in: keyspace)
        let reducer = Reduce<Int, Step, Never, Never> { count, message in
            if case .input(.add(let number)) = message { count += number }
            return .none
        }
        let store = Store(home, reducer: reducer)
        let reasons = Observed<[String]>([])
        let observation = home.observe(on: .inline, initial: false) { change in
            reasons.update { $0.append(change.cause.reason) }
        }
        store.send(.add(2))
        #expect(reasons.wait { $0 == ["add"] })
        try keyspace.apply([.set("count", Array("7".utf8))])
        #expect(reasons.wait { $0 == ["add", ""] })
        observation.cancel()
    }

    @Test func `in a scope a store begins anew`() {
        let store = Store(Counter.State(), reducer: Counter())
        store.send(.set(3))
        StateScope.run {
            store.send(.increment)
            #expect(store.count == 1)
        }
        #expect(store.count == 3)
    }
}
