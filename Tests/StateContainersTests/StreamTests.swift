import StateContainers
import StateEngine
import StateTestSupport
import Testing

struct StreamTests {
    @Test func `values begins with the current one and then gives the latest`() async {
        let state = MonitoredState(1, key: "a")
        var values = state.values.makeAsyncIterator()
        #expect(await values.next() == 1)
        for value in 2...50 { state ~> value }
        #expect(await values.next() == 50)
        let waiting = Task { await state.values.first { $0 == 99 } }
        state ~> 99
        #expect(await waiting.value == 99)
    }

    @Test func `a stream ends when its task is cancelled`() async {
        let state = MonitoredState(1, key: "a")
        let gate = Gate()
        let task = Task {
            var seen: [Int] = []
            for await value in state.values {
                seen.append(value)
                gate.open()
            }
            return seen
        }
        await elsewhere { gate.pass() }
        task.cancel()
        #expect(await task.value == [1])
        #expect(!state.isTold)
    }

    @Test func `changes gives each one`() async {
        let state = MonitoredState(0, key: "a")
        var changes = state.changes().makeAsyncIterator()
        let revisions = (1...64).map { state.modify($0) }
        for (index, revision) in revisions.enumerated() {
            let change = await changes.next()
            #expect(change?.old == index)
            #expect(change?.new == index + 1)
            #expect(change?.revision == revision)
            #expect(change?.skipped == 0)
        }
    }

    @Test func `changes counts what there was no room for`() async {
        let state = MonitoredState(0, key: "a")
        var changes = state.changes(buffer: 4).makeAsyncIterator()
        for value in 1...100 { state ~> value }
        for value in 1...3 { #expect(await changes.next()?.new == value) }
        let last = await changes.next()
        #expect(last?.old == 3)
        #expect(last?.new == 100)
        #expect(last?.skipped == 96)
        state ~> 101
        #expect(await changes.next()?.skipped == 0)
    }

    @Test(arguments: [1, 2, 5, 64])
    func `a slot gives what was put, in order, and counts the rest`(limit: Int) {
        let slot = StreamSlot(limit: limit)
        let epoch = Epoch.random()
        var generator = SplitMix(seed: UInt64(limit))
        var put = 0
        var taken = 0
        var waiting = 0
        for _ in 0..<10_000 {
            if Int.random(in: 0..<100, using: &generator) < 55 {
                let revision = Revision(epoch: epoch, number: Int64(put + 1))
                let change = StateChange(
                    old: put,
                    new: put + 1,
                    revision: revision,
                    cause: .unknown
                )
                slot.put(change.record)
                put += 1
                waiting = min(waiting + 1, limit)
            } else if let record = slot.take() {
                let change = StateChange<Int>(record)
                #expect(change.old == taken)
                #expect(change.new == taken + 1 + change.skipped)
                taken = change.new
                waiting -= 1
                if waiting == 0 { #expect(taken == put) }
            } else {
                #expect(waiting == 0)
            }
        }
        while let record = slot.take() { taken = StateChange<Int>(record).new }
        #expect(taken == put)
    }

    @Test func `changes since the current revision begins with the next`() async {
        let state = MonitoredState(0, key: "a")
        let revision = state.modify(1)
        var changes = state.changes(since: revision).makeAsyncIterator()
        state ~> 2
        let change = await changes.next()
        #expect(change?.old == 1)
        #expect(change?.new == 2)
    }

    @Test func `changes since an older revision begins with the current value`() async {
        let state = MonitoredState(0, key: "a")
        let revision = state.modify(1)
        for value in 2...5 { state ~> value }
        var changes = state.changes(since: revision).makeAsyncIterator()
        let first = await changes.next()
        #expect(first?.old == 5)
        #expect(first?.new == 5)
        #expect(first?.skipped == 3)
        let elsewhere = Revision(epoch: .random(), number: 1)
        var others = state.changes(since: elsewhere).makeAsyncIterator()
        let other = await others.next()
        #expect(other?.new == 5)
        #expect(other?.skipped == 0)
    }

    @Test func `a stream keeps its container`() async {
        var values = MonitoredState(5, key: "a").values.makeAsyncIterator()
        #expect(await values.next() == 5)
    }

    @Test func `wait returns the value that is as asked`() async throws {
        let state = MonitoredState(0, key: "a")
        let waiting = Task { try await state.wait(timeout: .seconds(20)) { $0 >= 10 } }
        for _ in 0..<10 { state ~> { $0 += 1 } }
        #expect(try await waiting.value == 10)
        #expect(try await state.wait(timeout: .zero) { $0 == 10 } == 10)
        let patience = Duration.seconds(Int64.max)
        #expect(try await state.wait(timeout: patience) { $0 == 10 } == 10)
        #expect(!state.isTold)
    }

    @Test func `wait that lasts too long says so with the key`() async {
        let state = MonitoredState(0, key: "volume")
        let error = await #expect(throws: StateError.self) {
            try await state.wait(timeout: .milliseconds(10)) { $0 == 1 }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("volume") == true)
    }

    @Test func `wait that is cancelled throws that it was`() async {
        let state = MonitoredState(0, key: "a")
        let gate = Gate()
        let waiting = Task {
            try await state.wait(timeout: .seconds(60)) { _ in
                gate.open()
                return false
            }
        }
        await elsewhere { gate.pass() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }
}

struct ScopedStateTests {
    struct Place: Sendable {
        var name = ""
        var count = 0
    }

    @Test func `a scope wakes only when its part changes`() {
        let state = MonitoredState(Place(), key: "a")
        let count = state.scope(\.count)
        let told = Told<Int>()
        let observation = count.observe(on: .inline, told.take)
        state ~> { $0.name = "b" }
        count.modify(3)
        state ~> { $0.name = "c" }
        state ~> { $0.count = 3 }
        count.modify { $0 += 1 }
        #expect(told.changes.current.map(\.new) == [0, 3, 4])
        #expect(told.changes.current.map(\.old) == [0, 0, 3])
        #expect(count.value == 4)
        #expect(state.value.name == "c")
        observation.cancel()
        #expect(!state.isTold)
    }

    @Test func `the values of a scope are those of its part`() async {
        let state = MonitoredState(Place(), key: "a")
        var names = state.scope(\.name).values.makeAsyncIterator()
        #expect(await names.next() == "")
        state ~> { $0.name = "b" }
        for _ in 0..<10 { state ~> { $0.count += 1 } }
        #expect(await names.next() == "b")
    }
}
