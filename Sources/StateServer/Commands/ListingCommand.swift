import CLinux
import StateEngine
import StateWire

/// A listing that is made in slices, under the keyspace's lock.
protocol SlicedListing: AnyObject {
    /// Lists until `deadline`, on the monotonic clock in nanoseconds; `max` for all.
    ///
    /// - Returns: Whether the listing is complete.
    func advance(
        in core: KeyspaceCore,
        until deadline: Int64,
        _ receipt: inout Receipt
    ) throws(StateError) -> Bool

    /// Its approximate memory.
    var byteCount: Int { get }

    /// Releases what the keyspace retains for it.
    func end(in core: KeyspaceCore)
}

/// A listing command that takes more than a slice: its connection waits, the others do not.
///
/// Used only by the loop thread.
final class ListingCommand {
    let connection: Connection
    let listing: any SlicedListing
    /// Writes the reply when the listing ends.
    let reply: (inout CommandContext) throws(StateError) -> Void
    /// Lists anew and replies; nil for a listing that changes nothing.
    let again: ((inout CommandContext) throws(StateError) -> Void)?

    init<Listed: SlicedListing>(
        _ listing: Listed,
        for connection: Connection,
        again: ((inout CommandContext) throws(StateError) -> Void)?,
        reply: @escaping (Listed, inout CommandContext) throws(StateError) -> Void
    ) {
        self.listing = listing
        self.again = again
        self.connection = connection
        self.reply = { (context) throws(StateError) in try reply(listing, &context) }
    }

    /// Ends the connection's listing: it is complete, or nobody waits for it any more.
    static func end(of connection: Connection, _ core: KeyspaceCore) {
        connection.inbound.listing?.listing.end(in: core)
        connection.inbound.listing = nil
    }
}

/// Lists for commands: at once if that takes less than a slice or is part of a transaction, else in
/// slices.
///
/// Used only by the loop thread.
final class Listings {
    private let access: AccessChanges
    private let work: UnfinishedWork
    private let gate: ReplyGate

    /// The length of the first slice; a longer listing continues in further slices.
    private static let firstSliceNanoseconds: Int64 = 100_000

    init(_ access: AccessChanges, _ work: UnfinishedWork, _ gate: ReplyGate) {
        (self.access, self.work, self.gate) = (access, work, gate)
    }

    /// Lists and replies.
    func list(
        _ request: Listing.Request,
        _ context: inout CommandContext,
        reply: @escaping (Listing, inout CommandContext) throws(StateError) -> Void
    ) throws(StateError) {
        var limited = request
        if let execution = context.execution { limited.visitLimit = execution.visitsLeft }
        let listing = Listing(limited)
        let again = { [self] (context: inout CommandContext) throws(StateError) in
            try list(request, &context, reply: reply)
        }
        try list(listing, &context, again: again, reply: reply)
        context.execution?.visitsLeft -= listing.visitedCount
    }

    /// The same with a listing of any kind.
    func list<Listed: SlicedListing>(
        _ listing: Listed,
        _ context: inout CommandContext,
        again: ((inout CommandContext) throws(StateError) -> Void)? = nil,
        reply: @escaping (Listed, inout CommandContext) throws(StateError) -> Void
    ) throws(StateError) {
        let connection = context.connection
        let deadline =
            context.isExecuting || context.round != .first
            ? .max : clinux_monotonic_nanoseconds() + Listings.firstSliceNanoseconds
        do throws(StateError) {
            let isDone = try listing.advance(
                in: context.core,
                until: deadline,
                &context.receipt
            )
            guard isDone else {
                let command = ListingCommand(
                    listing,
                    for: connection,
                    again: again,
                    reply: reply
                )
                connection.inbound.listing = command
                connection.inbound.awaitsLateReply = true
                connection.session.accessCount = access.count
                return work.items.append(.listing(command))
            }
        } catch {
            listing.end(in: context.core)
            throw error
        }
        listing.end(in: context.core)
        try reply(listing, &context)
    }

    /// Continues until `deadline`, and replies if the listing is complete.
    ///
    /// - Returns: Whether the command is done.
    func goOn(_ command: ListingCommand, until deadline: Int64, _ core: KeyspaceCore) -> Bool {
        var isDone = true
        gate.answer(command.connection, core) { (context) throws(StateError) in
            defer { if isDone { end(command, core) } }
            try access.requireSame(command.connection)
            isDone = try command.listing.advance(in: core, until: deadline, &context.receipt)
            guard isDone else { return }
            end(command, core)
            defer { context.offer?.again = command.again }
            try command.reply(&context)
        }
        return isDone
    }

    private func end(_ command: ListingCommand, _ core: KeyspaceCore) {
        ListingCommand.end(of: command.connection, core)
        command.connection.inbound.awaitsLateReply = false
    }
}
