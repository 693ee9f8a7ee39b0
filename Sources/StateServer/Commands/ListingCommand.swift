import CLinux
import StateEngine
import StateWire

/// Something that is listed in slices, under the keyspace's lock.
protocol SlicedListing: AnyObject {
    /// Lists until `deadline`, on the monotonic clock in nanoseconds; `max` for all.
    ///
    /// - Returns: Whether that was all.
    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool

    /// About how much memory it takes.
    var byteCount: Int { get }

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
    let reply: (KeyspaceCore, inout Receipt) throws(StateError) -> Void

    init<Listed: SlicedListing>(
        _ listing: Listed,
        for connection: Connection,
        reply: @escaping (Listed, KeyspaceCore, inout Receipt) throws(StateError) -> Void
    ) {
        self.listing = listing
        self.connection = connection
        self.reply = { (core, receipt) throws(StateError) in
            try reply(listing, core, &receipt)
        }
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
        _ receipt: inout Receipt,
        reply: @escaping (Listing, KeyspaceCore, inout Receipt) throws(StateError) -> Void
    ) throws(StateError) {
        var request = request
        if isExecuting { request.visitLimit = visitsLeft }
        let listing = Listing(request)
        try list(listing, for: connection, core, &receipt, reply: reply)
        if isExecuting { visitsLeft -= listing.visitedCount }
    }

    /// The same with a listing of any kind.
    func list<Listed: SlicedListing>(
        _ listing: Listed,
        for connection: Connection,
        _ core: KeyspaceCore,
        _ receipt: inout Receipt,
        reply: @escaping (Listed, KeyspaceCore, inout Receipt) throws(StateError) -> Void
    ) throws(StateError) {
        let deadline =
            isExecuting
            ? .max : clinux_monotonic_nanoseconds() + Dispatcher.firstSliceNanoseconds
        do throws(StateError) {
            guard try listing.advance(in: core, until: deadline, &receipt) else {
                let command = ListingCommand(listing, for: connection, reply: reply)
                connection.listing = command
                connection.awaitsLateReply = true
                connection.accessCount = access.count
                return goOnLater(command)
            }
        } catch {
            listing.end(in: core)
            throw error
        }
        listing.end(in: core)
        try reply(listing, core, &receipt)
    }

    /// Lists on until `deadline`, and replies if that was all.
    ///
    /// - Returns: Whether the command is done.
    func goOn(_ command: ListingCommand, until deadline: Int64, _ core: KeyspaceCore) -> Bool {
        let connection = command.connection
        var isDone = true
        answer(connection, core) { (receipt) throws(StateError) in
            defer { if isDone { end(command, core) } }
            try requireSameAccess(connection)
            isDone = try command.listing.advance(in: core, until: deadline, &receipt)
            guard isDone else { return }
            end(command, core)
            try command.reply(core, &receipt)
        }
        return isDone
    }

    private func end(_ command: ListingCommand, _ core: KeyspaceCore) {
        endListing(of: command.connection, core)
        command.connection.awaitsLateReply = false
    }

    /// The connection's listing is done, or nobody waits for it any more.
    func endListing(of connection: Connection, _ core: KeyspaceCore) {
        connection.listing?.listing.end(in: core)
        connection.listing = nil
    }
}
