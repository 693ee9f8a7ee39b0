import StateContainers
import StateTesting
import Testing

private enum Session {
    static let counter = State(0, key: "counter")
    static let storage = StateStorage("session") { () throws(StateError) in
        throw StateError(.storage, "a test opened the storage")
    }
    static let volume = PersistentState(5, key: "volume", in: storage)
}

@Suite(.isolatedState) struct IsolatedStateTests {
    // Each adds 1 while the others do: one value for all would be above 1 at last.
    @Test(arguments: 0..<8) func `tests that run in parallel do not see each other's values`(
        number: Int
    ) async {
        #expect(Session.counter.value == 0)
        Session.counter ~> { $0 += 1 }
        for _ in 0..<100 { await Task.yield() }
        #expect(Session.counter.value == 1)
    }

    @Test func `a stored container has a keyspace in memory, and its storage is not opened`() throws
    {
        try Session.volume ~> 6
        #expect(Session.volume.value == 6)
    }

    @Suite struct Inner {
        @Test func `the tests of a suite within have scopes of their own, too`() {
            #expect(Session.counter.value == 0)
            Session.counter ~> 7
        }
    }
}

struct IsolatedStateDependencyTests {
    private static var counting: StateDependencies {
        var dependencies = StateDependencies()
        dependencies.makeID = StateDependencies.countingIDs()
        return dependencies
    }

    @Test(.isolatedState(with: counting), arguments: 0..<4)
    func `each test has new dependencies`(number: Int) {
        #expect(StateDependencies.current.makeID() == "id-1")
        #expect(Session.counter.value == 0)
        Session.counter ~> 1
    }
}
