import CLinux
import StateContainers
import StateTestSupport
import Testing

/// What goes when its last reference goes, however many at once.
struct LifetimeTests {
    @Test func `containers of one key may be made and dropped by 4 threads at once`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        try keyspace.apply([.set("k", Array("7".utf8))])
        onThreads(4) { _ in
            for _ in 0..<100_000 {
                let state = try? PersistentState(0, key: "k", in: keyspace, codec: digits)
                if state?.value != 7 { Issue.record("the value is \(state?.value ?? -1)") }
            }
        }
    }

    @Test func `a container in a keyspace leaves nothing behind`() throws {
        let keyspace = try LocalKeyspace(backing: MemoryBacking())
        defer { keyspace.close() }
        let other = try PersistentState(0, key: "other", in: keyspace, codec: digits)
        func makeAndDrop(_ count: Int) throws {
            for number in 0..<count {
                let key = try Key("k/\(number)")
                let state = try PersistentState(0, key: key, in: keyspace, codec: digits)
                let observation = state.observe { _ in }
                observation.cancel()
            }
        }
        try makeAndDrop(1_000)
        let before = clinux_heap_byte_count()
        try makeAndDrop(50_000)
        // One that is kept is over 1,000 bytes; the other tests of the process allocate too.
        #expect(eventually { clinux_heap_byte_count() < before + 16 << 20 })
        #expect(other.value == 0)
    }

    @Test func `a scope that ends is gone with what was in it`() async {
        final class Probe: Sendable {}
        final class Kept: MonitoredState<Probe?>, @unchecked Sendable {
            override func didModify(_ change: StateChange<Probe?>) { super.didModify(change) }
        }
        let told = Observed(0)
        weak var probe: Probe?
        StateScope.run {
            let state = Kept(nil, key: "a")
            let mine = Probe()
            probe = mine
            let observation = state.observe { _ in told.update { $0 += 1 } }
            state ~> mine
            _ = state.observed.value
            withExtendedLifetime(observation) {}
        }
        let deadline = ContinuousClock.now + .seconds(20)
        while probe != nil, ContinuousClock.now < deadline { await Task.yield() }
        #expect(probe == nil)
    }
}
