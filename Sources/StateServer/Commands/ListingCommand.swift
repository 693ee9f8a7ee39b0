import CLinux
import StateEngine
import StateWire

/// Something that is listed in slices, under the keyspace's lock.
protocol SlicedListing: AnyObject {
    /// Lists until `deadline`, on the monotonic clock in nanoseconds; `max` for all.
    ///
    /// - Returns: Whether that was all.
    func advance(in core: KeyspaceCore, until deadline: Int64) throws(StateError) -> Bool

    /// About how much memory it takes.
    var byteCount: Int { get }

    /// Notes what of the listing is not durable.
    func observe(in core: KeyspaceCore)

    /// Gives back what the keyspace holds for it.
    func end(in core: KeyspaceCore)
}

/// A command that lists, and that takes more than a slice: its connection waits, the others do not.
///
/// Everything belongs to the loop thread.
final class ListingCommand {
    let connection: Connection
    let listing: any SlicedListing
    /// Writes the reply, in the moment in which the listing ends.
    let reply: (KeyspaceCore) throws(StateError) -> Void

    init<Listed: SlicedListing>(
        _ listing: Listed,
        for connection: Connection,
        reply: @escaping (Listed, KeyspaceCore) throws(StateError) -> Void
    ) {
        self.listing = listing
        self.connection = connection
        self.reply = { (core) throws(StateError) in try reply(listing, core) }
    }
}

extension Dispatcher {
    /// How long a listing takes before the connection waits for it among those that take longer.
    private static let firstSliceNanoseconds: Int64 = 100_000

    /// Lists and replies: at once if that takes less than a slice or is part of a transaction, else in slices.
    func list(
        _ request: Listing.Request,
        for connection: Connection,
        _ core: KeyspaceCore,
        reply: @escaping (Listing, KeyspaceCore) throws(StateError) -> Void
    ) throws(StateError) {
        var request = request
        if isExecuting { request.visitLimit = visitsLeft }
        let listing = Listing(request)
        try list(listing, for: connection, core, reply: reply)
        if isExecuting { visitsLeft -= listing.visitedCount }
    }

    /// The same with a listing of any kind.
    func list<Listed: SlicedListing>(
        _ listing: Listed,
        for connection: Connection,
        _ core: KeyspaceCore,
        reply: @escaping (Listed, KeyspaceCore) throws(StateError) -> Void
    ) throws(StateError) {
        let deadline =
            isExecuting
            ? .max : clinux_monotonic_nanoseconds() + Dispatcher.firstSliceNanoseconds
        do throws(StateError) {
            guard try listing.advance(in: core, until: deadline) else {
                let command = ListingCommand(listing, for: connection, reply: reply)
                connection.listing = command
                connection.isReadingHistory = true
                connection.accessCount = access.count
                return goOnLater(command)
            }
        } catch {
            listing.end(in: core)
            throw error
        }
        listing.end(in: core)
        listing.observe(in: core)
        try reply(listing, core)
    }

    /// Lists on until `deadline`, and replies if that was all.
    ///
    /// - Returns: Whether the command is done.
    func goOn(_ command: ListingCommand, until deadline: Int64, _ core: KeyspaceCore) -> Bool {
        let connection = command.connection
        var failure: StateError?
        do throws(StateError) {
            try requireSameAccess(connection)
            guard try command.listing.advance(in: core, until: deadline) else { return false }
        } catch {
            failure = error
        }
        endListing(of: connection, core)
        connection.isReadingHistory = false
        answer(connection, core) { () throws(StateError) in
            if let failure { throw failure }
            command.listing.observe(in: core)
            try command.reply(core)
        }
        return true
    }

    /// The connection's listing is done, or nobody waits for it any more.
    func endListing(of connection: Connection, _ core: KeyspaceCore) {
        connection.listing?.listing.end(in: core)
        connection.listing = nil
    }
}
