import StateEngine

/// Who is told of the changes that a container takes.
package final class ListenerList: Sendable {
    private struct Entry: Sendable {
        let receiver: any Receiver
        /// The last change that it is not told of, for it was there when it began.
        let last: Int64
    }

    private let entries = StateLock<[Entry]>([])

    /// Makes an empty list.
    package init() {}

    package var isEmpty: Bool { entries.withLock { $0.isEmpty } }

    /// In the order in which they came.
    var receivers: [any Receiver] { entries.withLock { $0.map(\.receiver) } }

    /// Adds a receiver, which is not told of the changes up to the `last`, unless there is one that is the same; `isSame` must
    /// say so without a look at a listener.
    ///
    /// - Returns: The one that is in the list.
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

    /// Takes those out that leave.
    func remove(where leaves: (any Receiver) -> Bool) {
        // Without the lock: to look for a listener that is gone, or to free a receiver, may run anybody's code.
        let leaving = receivers.filter(leaves)
        guard !leaving.isEmpty else { return }
        entries.withLock { entries in
            entries.removeAll { entry in leaving.contains { $0 === entry.receiver } }
        }
    }

    /// Gives a change to each who began before it.
    ///
    /// - Returns: Whether some are gone, or nobody is left.
    package func tell(_ change: ChangeRecord) -> Bool {
        let entries = entries.withLock { $0 }
        var someAreGone = entries.isEmpty
        for entry in entries where change.facts.number > entry.last {
            if entry.receiver.isGone {
                someAreGone = true
            } else {
                entry.receiver.put(change)
            }
        }
        return someAreGone
    }
}
