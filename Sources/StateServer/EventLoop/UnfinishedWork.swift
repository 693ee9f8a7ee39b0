/// What is left over at the end of slices and goes on after the events.
///
/// Everything belongs to the loop thread.
final class UnfinishedWork {
    var items: [Unfinished] = []
    /// Who has begun a command and not ended it.
    let frames = FrameTimer()
    /// Events that wait to be handled.
    var events: [Poller.Event] = []
    /// When it was last gone on with, on the monotonic clock in nanoseconds.
    var wentOnAt: Int64 = 0
}

/// What a connection has left over at the end of its slice, or what a user has to wait with.
enum Unfinished {
    /// Clients that come.
    case arrivals(Arrivals)
    /// What came while a user rested; see ``ClientMemory/Account/takePostponed()``.
    case events(ClientMemory.Account)
    /// Input that came in and is not carried out.
    case input(Connection)
    case listing(ListingCommand)
    /// Output that the socket may take.
    case output(Connection)

    /// Nil for events of several, and for clients that come.
    private var connection: Connection? {
        switch self {
        case .arrivals, .events: nil
        case .input(let connection), .output(let connection): connection
        case .listing(let command): command.connection
        }
    }

    var isClosed: Bool { connection?.isClosed ?? false }

    /// Nil for a connection that is closed, and for clients that come: whose they are is not known.
    var account: ClientMemory.Account? {
        if case .events(let account) = self { return account }
        return connection?.share.account
    }

    /// What its user has used lately.
    var usedNanoseconds: Int64 { account?.nanoseconds ?? 0 }

    /// How long it rests if others are served, on the monotonic clock in nanoseconds.
    var restEnd: Int64 {
        if case .arrivals(let arrivals) = self { return arrivals.restEnd }
        return account.map { max($0.rest.end, $0.rest.debtEnd) } ?? 0
    }
}
