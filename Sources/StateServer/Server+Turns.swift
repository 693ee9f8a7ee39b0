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
    ///
    /// It is what others wait for in each turn: with 1 ms the p99 of GETs beside a pipeline of KEYS was 12 ms, without it 0.6.
    static let sliceNanoseconds: Int64 = 250_000
    /// How long events are handled in one turn, if there is more than one user.
    private static let eventNanoseconds: Int64 = 1_000_000

    /// Whether something can be done without waiting for an event.
    var hasUnfinished: Bool {
        guard ready.isEmpty, !unfinished.isEmpty else { return !ready.isEmpty }
        let now = clinux_monotonic_nanoseconds()
        return unfinished.contains { !isResting($0, at: now) && !waitsForMemory($0) }
    }

    /// How long what was left over rests; -1 if nothing was.
    var millisecondsToUnfinished: Int32 {
        guard !unfinished.isEmpty else { return -1 }
        return unfinished.allSatisfy(waitsForMemory) ? 20 : 1
    }

    /// Whether a listing waits for the large one before it of the same user, or until there is room for what it lists.
    private func waitsForMemory(_ work: Unfinished) -> Bool {
        guard case .listing(let command) = work, let account = command.connection.account,
            command.listing.byteCount > Server.smallListingByteCount,
            account.largeListing !== command
        else { return false }
        return account.largeListing != nil || !registry.memory.hasRoom(of: command.connection)
    }

    /// Up to so many bytes all listings of a user go on beside each other.
    private static let smallListingByteCount = 1 << 20

    /// Whether something that was left over waits so that others find the processor free.
    ///
    /// Beside a loop that never sleeps the kernel makes others wait: GETs of 10 clients on two processors had a p99 of 6 ms
    /// beside slices of 0.25 ms, and of 0.3 without them.
    private func isResting(_ work: Unfinished, at now: Int64) -> Bool {
        guard let account = work.connection.account, account.restsUntil > now else { return false }
        return registry.memory.hasServedOthers(
            than: account,
            since: now - Server.companyNanoseconds
        )
    }

    /// For so long after an event of one user, what others have left over rests between its slices, in nanoseconds.
    private static let companyNanoseconds: Int64 = 5_000_000
    /// Rests are so many times as long as slices.
    private static let restFactor: Int64 = 3

    /// Handles the events, as many as a turn has time for.
    func handleEvents() {
        guard !ready.isEmpty else { return }
        let memory = registry.memory
        let isShared = memory.userCount > 1
        let limit = isShared ? Server.eventNanoseconds : 4 * Server.eventNanoseconds
        if memory.isUneven, ready.count > 1 { orderEvents() }
        var stopwatch = Stopwatch()
        var count = 0
        while count < ready.count, stopwatch.used < limit {
            // One user alone needs no account, and the clock is looked at now and then.
            if !isShared, count & 7 == 7 { charge(nil, &stopwatch) }
            sliceEnd = stopwatch.now + Server.sliceNanoseconds
            let account = isShared ? account(of: ready[count]) : nil
            handle(ready[count])
            count += 1
            // Else storage would wait for all of them: a turn reads up to 800 commands of 50 clients.
            keyspace.publishEarly()
            guard let account else { continue }
            charge(account, &stopwatch)
            memory.noteServed(account, at: stopwatch.now)
        }
        if count == ready.count {
            ready.removeAll(keepingCapacity: true)
        } else {
            ready.removeFirst(count)
        }
        memory.age(at: stopwatch.now)
    }

    /// Goes on with what was left over, for one slice.
    func goOnWithUnfinished() {
        unfinished.removeAll { $0.connection.isClosed }
        guard !unfinished.isEmpty else { return }
        var stopwatch = Stopwatch()
        if unfinished.contains(where: waitsForMemory) { expectStalls() }
        guard let work = takeUnfinished(at: stopwatch.now) else { return }
        sliceEnd = stopwatch.now + Server.sliceNanoseconds
        switch work {
        case .input(let connection): resume(connection)
        case .output(let connection):
            connection.isListedForSending = false
            flush(connection)
        case .listing(let command):
            if command.listing.byteCount > Server.smallListingByteCount {
                command.connection.account?.largeListing = command
            }
            let isDone = keyspace.withCore { dispatcher.goOn(command, until: sliceEnd, $0) }
            if !isDone { unfinished.append(work) }
            count(command.connection)
        }
        let account = work.connection.account
        charge(account, &stopwatch)
        account?.restsUntil = stopwatch.now + Server.restFactor * stopwatch.used
    }

    /// Takes out what comes first: of the user who has used the least, what has waited the longest; nil if all of it rests.
    private func takeUnfinished(at now: Int64) -> Unfinished? {
        var least: Int?
        for index in unfinished.indices
        where !isResting(unfinished[index], at: now) && !waitsForMemory(unfinished[index]) {
            guard let found = least else {
                least = index
                continue
            }
            if unfinished[index].usedNanoseconds < unfinished[found].usedNanoseconds {
                least = index
            }
        }
        return least.map { unfinished.remove(at: $0) }
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
        if hadLeft, !registry.memory.isUneven { orderEvents() }
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

    private func handle(_ event: Poller.Event) {
        let number = Int(event.token >> 2)
        if event.token & 3 == Token.listener {
            accept(from: Int32(number))
            return
        }
        guard let connection = registry.all[number] else { return }
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
