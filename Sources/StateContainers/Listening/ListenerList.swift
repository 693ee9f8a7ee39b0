import StateEngine

/// The receivers of the changes that a container takes, in the order in which they joined.
///
/// Joining and leaving take O(1) on average.
package final class ListenerList: Sendable {
    private struct Entry: Sendable {
        let receiver: any Receiver
        /// The last change that the receiver does not get, because it was published before the
        /// receiver joined.
        let last: Int64
    }

    private struct Entries: Sendable {
        /// Nil where a receiver has left; fewer than half of them.
        var places: [Entry?] = []
        var placesByReceiver: [ObjectIdentifier: Int] = [:]
        /// The receivers that deliver to a listener which was attached.
        var placesByListener: [ObjectIdentifier: Int] = [:]
        /// How many receivers there may be before those whose listener is gone are looked for.
        var crowd = 16
        /// How many receivers are called by the thread that brings a change.
        var inlineCount = 0

        var count: Int { placesByReceiver.count }

        func receiver(of listener: ObjectIdentifier) -> (any Receiver)? {
            placesByListener[listener].flatMap { places[$0]?.receiver }
        }

        mutating func add(_ receiver: any Receiver, after last: Int64) {
            placesByReceiver[ObjectIdentifier(receiver)] = places.count
            if receiver.isInline { inlineCount += 1 }
            if let listener = receiver.identity { placesByListener[listener] = places.count }
            places.append(Entry(receiver: receiver, last: last))
        }

        mutating func remove(_ receiver: any Receiver) {
            let id = ObjectIdentifier(receiver)
            guard let place = placesByReceiver.removeValue(forKey: id) else { return }
            if let listener = receiver.identity, placesByListener[listener] == place {
                placesByListener[listener] = nil
            }
            places[place] = nil
            if receiver.isInline { inlineCount -= 1 }
            if places.count > 2 * count { closeGaps() }
        }

        private mutating func closeGaps() {
            let entries = places.compactMap { $0 }
            places = []
            placesByListener = [:]
            inlineCount = 0
            for entry in entries { add(entry.receiver, after: entry.last) }
        }
    }

    private let entries = StateLock(Entries())

    /// Makes an empty list.
    package init() {}

    package var isEmpty: Bool { entries.withLock { $0.count == 0 } }

    /// Whether the thread that brings a change calls one of the receivers.
    var hasInline: Bool { entries.withLock { $0.inlineCount > 0 } }

    /// The receivers in the order in which they joined.
    var receivers: [any Receiver] { entries.withLock { $0.places.compactMap { $0?.receiver } } }

    /// The receiver that delivers to an attached listener; that may be gone, and another object have
    /// its address.
    func receiver(of listener: ObjectIdentifier) -> (any Receiver)? {
        entries.withLock { $0.receiver(of: listener) }
    }

    /// Whether there are twice as many receivers as when this was true before: time to remove those
    /// that are gone.
    func isCrowded() -> Bool {
        entries.withLock { entries in
            guard entries.count >= entries.crowd else { return false }
            entries.crowd = 2 * entries.count
            return true
        }
    }

    /// Adds a receiver for the changes after `last`, unless one for the same listener is in the
    /// list.
    ///
    /// - Returns: The receiver that is in the list.
    package func add(_ receiver: any Receiver, after last: Int64) -> any Receiver {
        entries.withLock { entries in
            if let same = receiver.identity.flatMap({ entries.receiver(of: $0) }) { return same }
            entries.add(receiver, after: last)
            return receiver
        }
    }

    /// Removes a receiver.
    func remove(_ receiver: any Receiver) { entries.withLock { $0.remove(receiver) } }

    /// Removes the receivers whose target no longer exists.
    func removeGone() {
        // Without the lock: a weak access to a listener, or freeing a receiver, may run arbitrary
        // code.
        let gone = receivers.filter(\.isGone)
        guard !gone.isEmpty else { return }
        entries.withLock { entries in
            for receiver in gone { entries.remove(receiver) }
            entries.crowd = max(16, 2 * entries.count)
        }
    }

    /// Gives a change to each receiver that joined before it.
    ///
    /// - Returns: Whether some receivers are gone, or none is left.
    package func deliver(_ change: ChangeRecord) -> Bool {
        // Most lists have one receiver, and a copy of the list is two atomic operations more.
        let (only, others) = entries.withLock { entries -> (Entry?, [Entry?]) in
            entries.places.count == 1 ? (entries.places[0], []) : (nil, entries.places)
        }
        if let only { return !ListenerList.deliver(change, to: only) }
        var someAreGone = others.isEmpty
        for case let entry? in others where !ListenerList.deliver(change, to: entry) {
            someAreGone = true
        }
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
