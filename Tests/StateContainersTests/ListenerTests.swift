import Dispatch
import Observation
import StateContainers
import StateEngine
import StateTestSupport
import Testing

struct ListenerTests {
    @Test func `a listener is told of each change with old, new and revision`() {
        let state = MonitoredState(1, key: "a")
        let listener = Listener(on: .inline)
        state.attach(listener: listener)
        let first = state.modify(2)
        let second = state.modify(3)
        let told = listener.told.changes.current
        #expect(told.map(\.old) == [1, 2])
        #expect(told.map(\.new) == [2, 3])
        #expect(told.map(\.revision) == [first, second])
        #expect(told.map(\.skipped) == [0, 0])
    }

    @Test(arguments: ["notifier", "inline", "queue"])
    func `a listener rests on the last change on every queue`(name: String) {
        let queues: [String: StateQueue] = [
            "inline": .inline, "queue": .queue(DispatchQueue(label: "test")),
        ]
        let state = MonitoredState(0, key: "a")
        let listener = Listener(on: queues[name] ?? .notifier)
        state.attach(listener: listener)
        for _ in 0..<1_000 { state ~> { $0 += 1 } }
        #expect(listener.told.rests { $0 == 1_000 })
        #expect(listener.told.isChain)
        let told = listener.told.changes.current
        #expect(told.reduce(0) { $0 + $1.skipped + 1 } == 1_000)
    }

    @Test func `the main actor is told on the main queue`() async {
        let state = MonitoredState(0, key: "a")
        let told = Told<Int>()
        let observation = state.observe { @MainActor change in
            MainActor.preconditionIsolated()
            told.take(change)
        }
        state ~> 7
        // The main queue runs only while nobody blocks its thread.
        let rests = await elsewhere { told.rests { $0 == 7 } }
        #expect(rests)
        observation.cancel()
    }

    @Test func `to attach twice tells once`() {
        let state = MonitoredState(0, key: "a")
        let listener = Listener(on: .inline)
        for _ in 0..<3 { state.attach(listener: listener, initial: true) }
        state ~> 1
        #expect(listener.told.changes.current.map(\.new) == [0, 1])
        #expect(state.allListeners.count == 1)
    }

    @Test func `the queue is asked for once, at attach`() {
        final class Asked: StateListener {
            let count = StateLock(0)
            var stateListenerQueue: StateQueue {
                count.withLock { $0 += 1 }
                return .inline
            }
            func stateModified<Value, Failure>(
                _ state: StateContainer<Value, Failure>,
                _ change: StateChange<Value>
            ) {}
        }
        let state = MonitoredState(0, key: "a")
        let listener = Asked()
        state.attach(listener: listener)
        for _ in 0..<10 { state ~> { $0 += 1 } }
        #expect(listener.count.withLock { $0 } == 1)
    }

    @Test func `initial tells the current value first`() {
        let state = MonitoredState(5, key: "a")
        let listener = Listener(on: .inline)
        state.attach(listener: listener, initial: true)
        let first = listener.told.changes.current.first
        #expect(first?.old == 5)
        #expect(first?.new == 5)
        #expect(first?.revision == state.versioned.revision)
    }

    @Test func `a listener that was released is gone`() {
        let state = MonitoredState(0, key: "a")
        var listener: Listener? = Listener(on: .inline)
        weak let trace = listener
        if let listener { state.attach(listener: listener) }
        let kept = Listener(on: .inline)
        state.attach(listener: kept)
        #expect(state.allListeners.count == 2)
        listener = nil
        #expect(trace == nil)
        #expect(state.allListeners.count == 1)
        state ~> 1
        #expect(kept.told.changes.current.map(\.new) == [1])
    }

    @Test func `one that is detached is told of nothing more`() {
        let state = MonitoredState(0, key: "a")
        let listener = Listener(on: .inline)
        let other = Listener(on: .inline)
        state.attach(listener: listener)
        state.attach(listener: other)
        state ~> 1
        state.detach(listener: listener)
        state ~> 2
        state.attach(listener: listener)
        state ~> 3
        #expect(listener.told.changes.current.map(\.new) == [1, 3])
        #expect(other.told.changes.current.map(\.new) == [1, 2, 3])
        #expect(state.allListeners.map { $0 === listener } == [false, true])
    }

    @Test func `one that is hidden pauses and is called once when it resumes`() {
        let state = MonitoredState(0, key: "a")
        let listener = Listener(on: .inline)
        state.attach(listener: listener)
        state ~> 1
        state.pause(listener: listener)
        for value in 2...9 { state ~> value }
        #expect(listener.told.changes.current.count == 1)
        state.resume(listener: listener)
        let told = listener.told.changes.current
        #expect(told.count == 2)
        #expect(told.last?.old == 1)
        #expect(told.last?.new == 9)
        #expect(told.last?.skipped == 7)
        state.pause(listener: listener)
        state.resume(listener: listener)
        #expect(listener.told.changes.current.count == 2)
        state ~> 10
        #expect(listener.told.changes.current.last?.new == 10)
    }

    @Test func `an observation ends when it is released or cancelled`() {
        let state = MonitoredState(0, key: "a")
        let released = Told<Int>()
        let cancelled = Told<Int>()
        var first: StateObservation? = state.observe(on: .inline, released.take)
        let second = state.observe(on: .inline, initial: false, cancelled.take)
        state ~> 1
        #expect(first != nil)
        first = nil
        second.cancel()
        state ~> 2
        second.cancel()
        #expect(released.changes.current.map(\.new) == [0, 1])
        #expect(cancelled.changes.current.map(\.new) == [1])
    }

    @Test func `an observation that is paused is called once when it resumes`() {
        let state = MonitoredState(0, key: "a")
        let told = Told<Int>()
        let observation = state.observe(on: .inline, initial: false, told.take)
        observation.pause()
        for value in 1...5 { state ~> value }
        observation.resume()
        #expect(told.changes.current.map(\.new) == [5])
        #expect(told.changes.current.map(\.skipped) == [4])
    }

    @Test func `a change goes in place again when nobody listens any more`() {
        let state = MonitoredState(0, key: "a")
        #expect(!state.isTold)
        let listener = Listener(on: .inline)
        state.attach(listener: listener)
        var observation: StateObservation? = state.observe(on: .inline) { _ in }
        #expect(state.isTold)
        #expect(observation != nil)
        observation = nil
        #expect(state.isTold)
        state.detach(listener: listener)
        #expect(!state.isTold)
        do {
            let passing = Listener()
            state.attach(listener: passing)
        }
        #expect(state.isTold)
        state ~> 1
        #expect(!state.isTold)
    }

    @Test func `an observation may be released in the body of modify`() {
        let state = MonitoredState<[StateObservation]>([], key: "a")
        let other = MonitoredState(0, key: "b")
        state.modify { [observation = other.observe { _ in }] in $0 = [observation] }
        state.modify { $0.removeAll() }
        other ~> 1
        #expect(!other.isTold)
    }

    @Test func `an observable view tells who tracks it`() {
        let state = MonitoredState(0, key: "a")
        let seen = StateLock<[Int]>([])
        #expect(state.observed === state.observed)
        withObservationTracking {
            #expect(state.observed.value == 0)
        } onChange: {
            seen.withLock { $0.append(state.value) }
        }
        state ~> 1
        state ~> 2
        #expect(seen.withLock { $0 } == [1])
    }

    @Test func `listeners that come and go leave nothing, and are told in their order`() {
        let state = MonitoredState(0, key: "many")
        for _ in 0..<10_000 { state.attach(listener: Listener(on: .inline)) }
        #expect(state.allListeners.isEmpty)
        let listeners = (0..<100).map { _ in Listener(on: .inline) }
        for listener in listeners { state.attach(listener: listener) }
        for listener in listeners.prefix(70) { state.detach(listener: listener) }
        #expect(
            state.allListeners.map(ObjectIdentifier.init)
                == listeners[70...].map(ObjectIdentifier.init)
        )
        state ~> 1
        #expect(listeners.map(\.told.changes.current.count) == (0..<100).map { $0 < 70 ? 0 : 1 })
    }
}
