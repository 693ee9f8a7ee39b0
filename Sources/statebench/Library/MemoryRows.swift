import StateContainers
import Synchronization

/// A bare lock.
final class BareBox<Value: Sendable>: Sendable {
    let mutex: Mutex<Value>

    init(_ value: Value) { mutex = Mutex(value) }
}

/// A value in memory, read and modified by one thread.
enum MemoryRows {
    static let readBase = "a bare Mutex, read"
    static let base = "a bare Mutex, modify"

    static func measure(_ count: Int, _ table: inout LibraryTable) {
        table.add(readBase, readBox(BareBox(1), count))
        table.add("State, value", read(State(1, key: "a"), count), beside: readBase, atMost: 2)
        table.add("a dispatch queue, value", readQueue(count / 10), beside: readBase)
        table.add(base, modifyBox(BareBox(1), count))
        table.add("State, modify", modify(State(1, key: "a"), count), beside: base, atMost: 2)
        table.add("State, ~>", assign(State(1, key: "a"), count), beside: base)
        table.add("a dispatch queue, modify", modifyQueue(count / 10), beside: base)
        table.add(
            "MonitoredState, nobody listens, modify",
            modify(MonitoredState(1, key: "a"), count),
            beside: base,
            atMost: 3
        )
    }

    @inline(never)
    private static func readBox(_ box: BareBox<Int>, _ count: Int) -> Double {
        var sum = 0
        defer { consume(sum) }
        return nanoseconds(count) { _ in sum &+= box.mutex.withLock { $0 } }
    }

    @inline(never)
    static func read(_ state: State<Int>, _ count: Int) -> Double {
        var sum = 0
        defer { consume(sum) }
        return nanoseconds(count) { _ in sum &+= state.value }
    }

    @inline(never)
    private static func readQueue(_ count: Int) -> Double {
        let container = DispatchContainer(1)
        var sum = 0
        defer { consume(sum) }
        return nanoseconds(count) { _ in sum &+= container.value }
    }

    @inline(never)
    private static func modifyBox(_ box: BareBox<Int>, _ count: Int) -> Double {
        nanoseconds(count) { _ in box.mutex.withLock { $0 &+= 1 } }
    }

    @inline(never)
    static func modify(_ state: State<Int>, _ count: Int) -> Double {
        nanoseconds(count) { _ in state.modify { $0 &+= 1 } }
    }

    @inline(never)
    private static func assign(_ state: State<Int>, _ count: Int) -> Double {
        nanoseconds(count) { state ~> $0 }
    }

    /// Includes the time until the last change is done.
    @inline(never)
    private static func modifyQueue(_ count: Int) -> Double {
        let container = DispatchContainer(1)
        let start = MonotonicClock.now
        for _ in 0..<count { container.modify { $0 &+= 1 } }
        container.finish()
        return Double(MonotonicClock.now - start) / Double(count)
    }
}

/// One element of a small and of a large array, in place.
enum ArrayRows {
    private static let base = "modify { $0[7] += 1 }, 10 elements"

    static func measure(_ count: Int, _ table: inout LibraryTable) {
        table.add(base, modify(State(Array(repeating: 0, count: 10), key: "a"), count))
        table.add(
            "modify { $0[7] += 1 }, 100,000 elements",
            modify(State(Array(repeating: 0, count: 100_000), key: "a"), count),
            beside: base,
            // The same, except for noise of the machine.
            atMost: 1.1
        )
    }

    @inline(never)
    private static func modify(_ state: State<[Int]>, _ count: Int) -> Double {
        nanoseconds(count) { _ in state.modify { $0[7] += 1 } }
    }
}

/// Containers while scopes exist.
enum ScopeRows {
    static func measure(_ count: Int, _ table: inout LibraryTable) {
        let state = State(1, key: "a")
        StateScope.run {
            table.add(
                "State in a scope, value",
                MemoryRows.read(state, count),
                beside: MemoryRows.readBase
            )
            table.add(
                "State in a scope, modify",
                MemoryRows.modify(state, count),
                beside: MemoryRows.base
            )
        }
        table.add(
            "State where others have scopes, modify",
            MemoryRows.modify(state, count),
            beside: MemoryRows.base
        )
    }
}
