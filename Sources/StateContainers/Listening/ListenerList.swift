import StateEngine

/// The receivers of the changes that a container takes.
package final class ListenerList: Sendable {
    private struct Entry: Sendable {
        let receiver: any Receiver
        /// The last change that the receiver does not get, because it was published before the
        /// receiver joined.
        let last: Int64
    }

    private let entries = StateLock<[Entry]>([])

    /// Makes an empty list.
    package init() {}

    package var isEmpty: Bool { entries.withLock { $0.isEmpty } }

    /// The receivers in the order in which they joined.
    var receivers: [any Receiver] { entries.withLock { $0.map(\.receiver) } }

    /// Adds a receiver for the changes after `last`, unless an equal one is in the list.
    ///
    /// `isSame` must decide without access to a listener.
    ///
    /// - Returns: The receiver that is in the list.
    package func add(
        _ receiver: any Receiver,
        after last: Int64,
        unless isSame: @Sendable (any Receiver) -> Bool
    ) -> any Receiver {
        entries.withLock { entries in
            if let same = entries.first(where: { isSame($0.receiver) }) { return same.receiver }
            entries.append(Entry(receiver: receiver, last: last))
            return receiver
        }
    }

    /// Removes the receivers for which `leaves` returns true.
    func remove(where leaves: (any Receiver) -> Bool) {
        // Without the lock: a weak access to a listener, or freeing a receiver, may run arbitrary
        // code.
        let leaving = receivers.filter(leaves)
        guard !leaving.isEmpty else { return }
        entries.withLock { entries in
            entries.removeAll { entry in leaving.contains { $0 === entry.receiver } }
        }
    }

    /// Gives a change to each receiver that joined before it.
    ///
    /// - Returns: Whether some receivers are gone, or none is left.
    package func deliver(_ change: ChangeRecord) -> Bool {
        // Most lists have one receiver, and a copy of the list is two atomic operations more.
        let (only, others) = entries.withLock { $0.count == 1 ? ($0[0], []) : (nil, $0) }
        if let only { return !ListenerList.deliver(change, to: only) }
        var someAreGone = others.isEmpty
        for entry in others where !ListenerList.deliver(change, to: entry) { someAreGone = true }
        return someAreGone
    }

    /// - Returns: Whether the receiver is there.
    private static func deliver(_ change: ChangeRecord, to entry: Entry) -> Bool {
        guard change.facts.number > entry.last else { return true }
        guard !entry.receiver.isGone else { return false }
        entry.receiver.put(change)
        return true
    }
}
