import CLinux
import StateEngine
import StateWire

/// A command that lists, and that takes more than a slice: its connection waits, the others do not.
///
/// Everything belongs to the loop thread.
final class ListingCommand {
    let connection: Connection
    let listing: Listing
    /// Writes the reply, in the moment in which the listing ends.
    let reply: (Listing, KeyspaceCore) throws(StateError) -> Void

    init(
        _ listing: Listing,
        for connection: Connection,
        reply: @escaping (Listing, KeyspaceCore) throws(StateError) -> Void
    ) {
        (self.listing, self.connection, self.reply) = (listing, connection, reply)
    }
}

extension Dispatcher {
    /// How long a listing takes before the connection waits for it among those that take longer.
    private static let firstSliceNanoseconds: Int64 = 250_000

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
        let deadline =
            isExecuting
            ? .max : clinux_monotonic_nanoseconds() + Dispatcher.firstSliceNanoseconds
        guard try listing.advance(in: core, until: deadline) else {
            let command = ListingCommand(listing, for: connection, reply: reply)
            connection.listing = command
            connection.isReadingHistory = true
            connection.accessCount = access.count
            goOnLater(command)
            return
        }
        if isExecuting { visitsLeft -= listing.visitedCount }
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
            try command.reply(command.listing, core)
        }
        return true
    }

    /// The connection's listing is done, or nobody waits for it any more.
    func endListing(of connection: Connection, _ core: KeyspaceCore) {
        connection.listing?.listing.end(in: core)
        connection.listing = nil
    }
}
