import StateEngine

/// Who is told of the changes that a container takes.
package final class ListenerList<Value: Sendable>: Sendable {
    private struct Entry: Sendable {
        let receiver: any Receiver<Value>
        /// The last change that it is not told of, for it was there when it began.
        let last: Int64
    }

    private let entries = StateLock<[Entry]>([])

    /// Makes an empty list.
    package init() {}

    package var isEmpty: Bool { entries.withLock { $0.isEmpty } }

    /// In the order in which they came.
    var receivers: [any Receiver<Value>] { entries.withLock { $0.map(\.receiver) } }

    /// Adds a receiver, unless there is one that is the same.
    ///
    /// - Parameter last: The number of the last change that it is not told of.
    /// - Returns: The one that is in the list.
    package func add(
        _ receiver: any Receiver<Value>,
        after last: Int64,
        unless isSame: @Sendable (any Receiver<Value>) -> Bool
    ) -> any Receiver<Value> {
        entries.withLock { entries in
            if let same = entries.first(where: { isSame($0.receiver) }) { return same.receiver }
            entries.append(Entry(receiver: receiver, last: last))
            return receiver
        }
    }

    /// Takes those out that leave. They are returned, for to free one may run anybody's code.
    @discardableResult
    func remove(
        where leaves: @Sendable (any Receiver<Value>) -> Bool
    ) -> [any Receiver<Value>] {
        entries.withLock { entries in
            let left = entries.lazy.map(\.receiver).filter(leaves)
            let receivers = Array(left)
            if !receivers.isEmpty { entries.removeAll { leaves($0.receiver) } }
            return receivers
        }
    }

    /// Gives a change to each who began before it.
    ///
    /// - Returns: Whether some are gone, or nobody is left.
    package func tell(_ change: StateChange<Value>) -> Bool {
        let entries = entries.withLock { $0 }
        var someAreGone = entries.isEmpty
        for entry in entries where change.number > entry.last {
            if entry.receiver.isGone {
                someAreGone = true
            } else {
                entry.receiver.put(change)
            }
        }
        return someAreGone
    }
}
