import StateContainers
import StateEngine
import StateTestSupport
import Testing

// Serialized for the one trace hook.
@Suite(.serialized)
struct NotifierTests {
    @Test func `7 listeners that block for ever delay no other`() {
        let gate = Gate()
        defer { gate.open() }
        let state = MonitoredState(0, key: "a")
        let blocked = (0..<7).map { _ in state.observe { _ in gate.pass() } }
        #expect(gate.isReached(by: 7))
        let told = Told<Int>()
        let observation = state.observe(told.take)
        for value in 1...100 {
            state ~> value
            #expect(told.rests { $0 == value })
        }
        #expect(Notifier.shared.threadCount <= 8)
        observation.cancel()
        for observation in blocked { observation.cancel() }
    }

    @Test func `the calls of one listener are serial and in order`() {
        let state = MonitoredState(0, key: "a")
        let isAtWork = StateLock(false)
        let overlaps = StateLock(0)
        let told = Told<Int>()
        let observation = state.observe { change in
            if isAtWork.withLock({ exchange(&$0, true) }) { overlaps.withLock { $0 += 1 } }
            told.take(change)
            isAtWork.withLock { $0 = false }
        }
        onThreads(4) { _ in
            for _ in 0..<2_500 { state ~> { $0 += 1 } }
        }
        #expect(told.rests { $0 == 10_000 })
        #expect(overlaps.withLock { $0 } == 0)
        #expect(told.isChain)
        observation.cancel()
    }

    @Test func `a listener at work for over a second is named to the trace hook`() {
        let slow = Observed<[StateTrace.Event]>([])
        StateTrace.hook = { event in
            if case .slow = event { slow.update { $0.append(event) } }
        }
        defer { StateTrace.hook = nil }
        let gate = Gate()
        defer { gate.open() }
        let state = MonitoredState(0, key: "trace/slow")
        let observation = state.observe { _ in gate.pass() }
        let line = #line - 1
        let event = StateTrace.Event.slow("trace/slow", who: "\(#fileID):\(line)")
        #expect(slow.wait { $0.contains(event) })
        observation.cancel()
    }

    @Test func `the trace hook hears of keys and revisions`() {
        let heard = StateLock<[StateTrace.Event]>([])
        StateTrace.hook = { event in heard.withLock { $0.append(event) } }
        defer { StateTrace.hook = nil }
        let state = MonitoredState(0, key: "trace/heard")
        let listener = Listener()
        state.attach(listener: listener)
        let revision = state.modify(1)
        #expect(heard.withLock { $0.contains(.change("trace/heard", revision)) })
    }

    /// Puts a value in place of another, which is returned.
    private func exchange<Value>(_ place: inout Value, _ new: Value) -> Value {
        let old = place
        place = new
        return old
    }
}
