import CLinux
import StateEngine
import StateWire
import Synchronization

/// What one connection has left over at the end of its slice.
enum Unfinished {
    /// Input that came in and is not carried out.
    case input(Connection)
    case listing(ListingCommand)
    /// Output that the socket may take.
    case output(Connection)

    var connection: Connection {
        switch self {
        case .input(let connection), .output(let connection): connection
        case .listing(let command): command.connection
        }
    }

    /// What its user has used lately.
    fileprivate var usedNanoseconds: Int64 { connection.account?.nanoseconds ?? 0 }
}

/// Who is served when: every connection by slices, so that none keeps the others waiting.
///
/// An event is worth one slice at most. What is left over goes on after the events, and of both the users come first who have used
/// the least time of the loop lately. So a turn takes a few milliseconds, whatever the commands are, but for those that have
/// to be one moment: their steps have a limit (``Dispatcher/stepLimit(_:_:)``).
extension Server {
    /// How long the commands of one connection are carried out in a row, in nanoseconds.
    static let sliceNanoseconds: Int64 = 1_000_000
    /// How long events are handled in one turn.
    private static let eventNanoseconds: Int64 = 4_000_000
    /// How long goes on what was left over; one slice in any case.
    private static let unfinishedNanoseconds: Int64 = 2_000_000

    var hasUnfinished: Bool { !ready.isEmpty || !unfinished.isEmpty }

    /// Handles the events, as many as a turn has time for.
    func handleEvents() {
        guard !ready.isEmpty else { return }
        var stopwatch = Stopwatch()
        var count = 0
        while count < ready.count, stopwatch.used < Server.eventNanoseconds {
            sliceEnd = stopwatch.now + Server.sliceNanoseconds
            let account = handle(ready[count])
            count += 1
            // Else storage would wait for all of them: a turn reads up to 800 commands of 50 clients.
            keyspace.publishEarly()
            charge(account, &stopwatch)
        }
        if count == ready.count {
            ready.removeAll(keepingCapacity: true)
        } else {
            ready.removeFirst(count)
        }
        registry.memory.age(at: stopwatch.now)
    }

    /// Goes on with what was left over.
    func goOnWithUnfinished() {
        guard !unfinished.isEmpty else { return }
        var stopwatch = Stopwatch()
        repeat {
            let work = takeUnfinished()
            guard !work.connection.isClosed else { continue }
            sliceEnd = stopwatch.now + Server.sliceNanoseconds
            switch work {
            case .input(let connection): resume(connection)
            case .output(let connection):
                connection.isListedForSending = false
                flush(connection)
            case .listing(let command):
                let isDone = keyspace.withCore { dispatcher.goOn(command, until: sliceEnd, $0) }
                if !isDone { unfinished.append(work) }
                count(command.connection)
            }
            charge(work.connection.account, &stopwatch)
        } while !unfinished.isEmpty && stopwatch.used < Server.unfinishedNanoseconds
    }

    /// Takes out what comes first: of the user who has used the least, what has waited the longest.
    private func takeUnfinished() -> Unfinished {
        var least = 0
        for index in unfinished.indices.dropFirst()
        where unfinished[index].usedNanoseconds < unfinished[least].usedNanoseconds {
            least = index
        }
        return unfinished.remove(at: least)
    }

    /// Charges a user for the time since the last look at the stopwatch, and for what its commits will take to be published.
    private func charge(_ account: ClientMemory.Account?, _ stopwatch: inout Stopwatch) {
        let used = stopwatch.lap(adding: dispatcher.owedNanoseconds)
        dispatcher.owedNanoseconds = 0
        account?.nanoseconds += used
    }

    // MARK: Events

    func collectEvents(milliseconds: Int32) {
        // Those that a turn had no time for wait among the new ones.
        var places: [UInt64: Int] = [:]
        for (index, event) in ready.enumerated() { places[event.token] = index }
        let hadLeft = !ready.isEmpty
        poller.wait(milliseconds: milliseconds) { event in
            switch event.token & 3 {
            case Token.wakeup: needsSettling = true
            case Token.signals: take(signal: clinux_read_signal(signals))
            default:
                if hadLeft, let place = places[event.token] {
                    ready[place].merge(event)
                } else {
                    ready.append(event)
                }
            }
        }
        if hadLeft { orderEvents() }
    }

    /// Puts the events of those first who have used the least, and leaves the order among them.
    private func orderEvents() {
        let ordered = ready.enumerated().map { index, event in
            (event, used: account(of: event)?.nanoseconds ?? 0, index)
        }
        ready = ordered.sorted { ($0.used, $0.2) < ($1.used, $1.2) }.map(\.0)
    }

    private func account(of event: Poller.Event) -> ClientMemory.Account? {
        guard event.token & 3 == Token.connection else { return nil }
        return registry.all[Int(event.token >> 2)]?.account
    }

    /// - Returns: Whom it was done for.
    private func handle(_ event: Poller.Event) -> ClientMemory.Account? {
        let number = Int(event.token >> 2)
        if event.token & 3 == Token.listener {
            accept(from: Int32(number))
            return nil
        }
        guard let connection = registry.all[number] else { return nil }
        if event.isReadable { history?.activity.wrappingAdd(1, ordering: .relaxed) }
        // A client that has left may have sent commands before: they are read first, as long as they can be.
        let mayRead = event.isReadable && connection.pause == nil && !connection.isEnding
        if event.isHungUp, !mayRead {
            // What it sent is carried out first; then the event comes again.
            if connection.pause != .turnIsOver { end(connection) }
        } else {
            if event.isWritable { flushes.add(connection) }
            if event.isReadable { receive(connection, hasEnded: event.hasEnded) }
        }
        return connection.account
    }
}

extension Poller.Event {
    /// Takes over what a later event of the same descriptor says.
    fileprivate mutating func merge(_ event: Poller.Event) {
        isReadable = isReadable || event.isReadable
        isWritable = isWritable || event.isWritable
        isHungUp = isHungUp || event.isHungUp
        hasEnded = hasEnded || event.hasEnded
    }
}

/// What a turn has used so far.
private struct Stopwatch {
    private(set) var now = clinux_monotonic_nanoseconds()
    /// In nanoseconds, with what is still to come of it.
    private(set) var used: Int64 = 0

    /// - Returns: What was used since the last call, and `more`.
    mutating func lap(adding more: Int64) -> Int64 {
        let last = now
        now = clinux_monotonic_nanoseconds()
        let lap = now - last + more
        used += lap
        return lap
    }
}
