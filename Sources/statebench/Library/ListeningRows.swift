import StateContainers
import StateEngine
import Synchronization

/// A container whose subclass takes its changes.
final class CountedState: State<Int>, @unchecked Sendable {
    private let sum = Mutex(0)

    override func didModify(_ change: StateChange<Int>) {
        super.didModify(change)
        sum.withLock { $0 &+= change.new }
    }
}

/// Containers with observers, and the slot of a stream.
enum ListeningRows {
    static func measure(_ count: Int, _ table: inout LibraryTable) {
        modify(CountedState(1, key: "a"), "State with a didModify, modify", count, &table)
        for (queue, name, bound) in [
            (StateQueue.inline, "inline", 250.0), (.notifier, "on the notifier", nil),
        ] {
            let state = MonitoredState(1, key: "a")
            let sum = BareBox(0)
            let observation = state.observe(on: queue, initial: false) { @Sendable change in
                sum.mutex.withLock { $0 &+= change.new }
            }
            let title = "MonitoredState, one listens \(name), modify"
            table.add(title, MemoryRows.modify(state, count), atMost: bound)
            withExtendedLifetime(observation) {}
        }
        table.add("one of 500 observations, cancelled", cancel(500))
        table.add(
            "one of 8,000 observations, cancelled",
            cancel(8_000),
            beside: "one of 500 observations, cancelled",
            atMost: 4
        )
        let (put, take) = measureSlot(count)
        table.add("a stream slot, put", put, atMost: 100)
        table.add("a stream slot, take", take, atMost: 100)
    }

    private static func cancel(_ count: Int) -> Double {
        let state = MonitoredState(1, key: "a")
        let observations = (0..<count).map { _ in
            state.observe(on: .inline, initial: false) { _ in }
        }
        return nanoseconds(count) { observations[$0].cancel() }
    }

    private static func modify(
        _ state: State<Int>,
        _ title: String,
        _ count: Int,
        _ table: inout LibraryTable
    ) {
        table.add(title, MemoryRows.modify(state, count), beside: MemoryRows.base)
    }

    private static func measureSlot(_ count: Int) -> (put: Double, take: Double) {
        let room = 64
        let slot = StreamSlot(limit: room)
        // As containers put.
        let receiver: any Receiver = slot
        let revision = Revision(epoch: .random(), number: 1)
        let change = StateChange(old: 1, new: 2, revision: revision, cause: .unknown).record
        var (puts, takes): ([Double], [Double]) = ([], [])
        for _ in 0..<max(1, count / room) {
            puts.append(nanoseconds(room) { _ in receiver.put(change) })
            takes.append(nanoseconds(room) { _ in consume(slot.take()) })
        }
        return (puts.median, takes.median)
    }
}
