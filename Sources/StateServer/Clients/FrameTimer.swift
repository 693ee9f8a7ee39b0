/// The connections with an incomplete command, the earliest first.
///
/// An intrusive linked list: adding and removing takes constant time. Used only by the loop thread.
final class FrameTimer {
    /// A place in the list.
    final class Place {
        unowned let connection: Connection
        /// On the monotonic clock, in milliseconds.
        fileprivate(set) var since: Int64 = 0
        fileprivate var isListed = false
        fileprivate var next: Place?
        fileprivate unowned(unsafe) var previous: Place?

        init(_ connection: Connection) { self.connection = connection }
    }

    private var first: Place?
    private unowned(unsafe) var last: Place?

    /// The connection whose command began first.
    var earliest: Place? { first }

    /// Starts the time of a connection's command; `isNew` says that it is another command than
    /// before.
    func begin(_ connection: Connection, isNew: Bool, at now: @autoclosure () -> Int64) {
        let place = connection.places.frame ?? Place(connection)
        connection.places.frame = place
        if place.isListed {
            guard isNew else { return }
            remove(place)
        }
        place.since = now()
        place.isListed = true
        place.previous = last
        if let last { last.next = place } else { first = place }
        last = place
    }

    /// The command is complete, or no longer waits for its client.
    func end(_ connection: Connection) {
        if let place = connection.places.frame, place.isListed { remove(place) }
    }

    private func remove(_ place: Place) {
        place.isListed = false
        if let previous = place.previous { previous.next = place.next } else { first = place.next }
        if let next = place.next { next.previous = place.previous } else { last = place.previous }
        place.next = nil
        place.previous = nil
    }
}
