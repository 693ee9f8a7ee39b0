import CLinux
import Glibc
import StateEngine
import Synchronization

/// Scheduling: every connection is served in slices, so that none makes the others wait.
///
/// An event gets one slice at most. Unfinished work continues after the events. In both, users who
/// have used the least loop time recently come first. So a turn takes a few milliseconds, except
/// for commands that must run at one moment: their steps have a limit
/// (``ServerOptions/stepLimit(_:)``), and a user who sends many of them rests between them while
/// others are served (``Rest``).
extension Server {
    /// How long the commands of one connection run in a row, in nanoseconds.
    ///
    /// Others wait so long in each turn. GETs of 10 clients had a p99 of 0.16 ms; beside a pipeline
    /// of KEYS, with slices of 0.25 ms, one of 0.61 ms.
    private var sliceNanoseconds: Int64 { registry.memory.userCount > 1 ? 50_000 : 250_000 }
    /// The longest rest after work longer than a slice, in nanoseconds.
    var longestRest: Int64 { options.restMilliseconds * 1_000_000 }
    /// How long events are handled in one turn, if there is more than one user.
    static let eventNanoseconds: Int64 = 120_000

    /// Whether there is work without waiting for an event.
    var hasUnfinished: Bool {
        guard unfinished.events.isEmpty, !unfinished.items.isEmpty else {
            return !unfinished.events.isEmpty
        }
        let now = clinux_monotonic_nanoseconds()
        return unfinished.items.contains { !isResting($0, at: now) && !waitsForMemory($0) }
    }

    /// How long unfinished work rests: at most 1 ms, as other users may have no more work; -1 if
    /// there is none.
    var nanosecondsToUnfinished: Int64 {
        guard !unfinished.items.isEmpty else { return -1 }
        let ends = unfinished.items.compactMap { waitsForMemory($0) ? nil : $0.restEnd }
        guard let end = ends.min() else { return 20_000_000 }
        return min(max(end - clinux_monotonic_nanoseconds(), 20_000), 1_000_000)
    }

    /// Whether a listing waits for an earlier large one of the same user, or for memory.
    private func waitsForMemory(_ work: Unfinished) -> Bool {
        guard case .listing(let command) = work, let account = command.connection.share.account,
            command.listing.byteCount > Server.smallListingByteCount,
            account.largeListing !== command
        else { return false }
        return account.largeListing != nil || !registry.memory.hasRoom(of: command.connection)
    }

    /// Up to so many bytes, all listings of a user continue at the same time.
    private static let smallListingByteCount = 1 << 20

    private func isResting(_ work: Unfinished, at now: Int64) -> Bool {
        switch work {
        case .arrivals(let arrivals):
            return work.restEnd > now && servedOther(than: arrivals.account, now) != nil
        case .leftovers(let pile):
            guard let account = pile.connection.share.account else { return false }
            return pile.restEnd > now && servedOther(than: account, now) != nil
        case .messages(let outbox):
            return outbox.restEnd > now && servedOther(than: outbox.account, now) != nil
        case .events, .input, .listing, .output: break
        }
        return work.account.map { isResting($0, at: now) } ?? false
    }

    /// Whether the work of a user waits while others are served.
    ///
    /// If two users both had many short events, the one who has used more waits, so that the loop
    /// is not idle.
    func isResting(_ account: ClientMemory.Account, at now: Int64) -> Bool {
        let rest = account.rest
        // Who waits for the disk has no events, and would wait for what is written meanwhile, too.
        if rest.end > now, registry.memory.isDiskAwaited(byOtherThan: account) { return true }
        guard rest.end > now || rest.debtEnd > now, let other = servedOther(than: account, now)
        else { return false }
        return rest.end > now || other.rest.debtEnd <= now
            || other.nanoseconds < account.nanoseconds
    }

    private func servedOther(
        than account: ClientMemory.Account,
        _ now: Int64
    ) -> ClientMemory.Account? {
        registry.memory.other(than: account, servedSince: now - Server.companyNanoseconds)
    }

    /// How long after an event of one user others rest, in nanoseconds.
    private static let companyNanoseconds: Int64 = 5_000_000

    /// Handles as many events as a turn has time for.
    func handleEvents() {
        turn.accepted = nil
        guard !unfinished.events.isEmpty else { return }
        let memory = registry.memory
        let isShared = memory.userCount > 1
        if let history = history.thread {
            history.longestRest.store(isShared ? longestRest : 0, ordering: .relaxed)
            history.loopProcessor.store(clinux_current_processor(), ordering: .relaxed)
        }
        let limit = isShared ? Server.eventNanoseconds : 4_000_000
        if isShared, unfinished.events.count > Server.crowdCount { postponeCrowds() }
        if isShared, unfinished.events.count > 1 { orderEvents() }
        var stopwatch = Stopwatch(countsProcessor: isShared)
        var count = 0
        var users: Set<UInt32> = []
        while count < unfinished.events.count, stopwatch.used < limit {
            let event = unfinished.events[count]
            count += 1
            guard isShared else {
                // A single user needs no account; the clock is checked now and then.
                if count & 7 == 0 { charge(nil, &stopwatch) }
                handle(event, at: stopwatch.now)
                continue
            }
            let connection = connection(of: event)
            let account = connection?.share.account
            if let connection, let account, postpones(event, of: connection, account, stopwatch.now)
            {
                continue
            }
            handle(event, at: stopwatch.now)
            let served = connection ?? turn.accepted
            let before = stopwatch.used
            charge(served, &stopwatch)
            guard let account = served?.share.account else { continue }
            account.noteEvent(stopwatch.used - before)
            account.turnsWaited = 0
            users.insert(account.uid)
            memory.noteServed(account, at: stopwatch.now)
        }
        if count == unfinished.events.count {
            unfinished.events.removeAll(keepingCapacity: true)
        } else {
            unfinished.events.removeFirst(count)
            noteWaiting(besides: users)
        }
        turn.servedAt = stopwatch.now / 1_000_000
        memory.age(at: stopwatch.now)
    }

    private func handle(_ event: Poller.Event, at now: Int64) {
        turn.sliceEnd = now + sliceNanoseconds
        handle(event)
        guard turn.hasCommitted else { return }
        turn.hasCommitted = false
        // Otherwise storage would wait for all events: a turn reads up to 800 commands of 50
        // clients.
        if !turn.commitsHere.isEstablished { keyspace.publishEarly() }
    }

    /// How long unfinished work waits at most so that ready replies are sent first, in nanoseconds.
    private static let longestDelay: Int64 = 300_000

    /// Continues unfinished work, for one slice.
    ///
    /// Replies to several users do not wait for it: they are sent first, and the loop sleeps so
    /// that the clients get a processor.
    func goOnWithUnfinished() {
        unfinished.items.removeAll(where: \.isClosed)
        guard !unfinished.items.isEmpty else { return }
        let isFirst = registry.memory.userCount <= 1 || flushes.isEmpty
        let now = clinux_monotonic_nanoseconds()
        guard isFirst || now - unfinished.wentOnAt > Server.longestDelay else { return }
        unfinished.wentOnAt = now
        if unfinished.items.contains(where: waitsForMemory) { expectStalls() }
        var stopwatch = Stopwatch(countsProcessor: registry.memory.userCount > 1)
        // New clients have used most of the slice.
        turn.sliceEnd = stopwatch.now + sliceNanoseconds / (turn.accepted == nil ? 1 : 4)
        repeat {
            guard let work = takeUnfinished(at: stopwatch.now) else { return }
            charge(goOn(with: work), &stopwatch)
        } while stopwatch.now < turn.sliceEnd
    }

    /// - Returns: The connection of the work.
    private func goOn(with work: Unfinished) -> Connection? {
        switch work {
        case .arrivals(let arrivals):
            goOn(with: arrivals)
            return turn.accepted
        case .events(let account):
            guard let connection = account.takePostponed() else { return nil }
            if account.hasPostponed { unfinished.items.append(work) }
            guard let event = connection.inbound.postponedEvent else { return nil }
            connection.inbound.postponedEvent = nil
            handle(event)
            return connection
        case .input(let connection):
            resume(connection)
            return connection
        case .output(let connection):
            connection.places.hasUnfinishedOutput = false
            flush(connection)
            return connection
        case .leftovers(let pile):
            services.leftovers.goOn(
                with: pile,
                until: turn.sliceEnd,
                services.tracking,
                takeApart: takeApart
            )
            return nil
        case .messages(let outbox):
            goOn(with: outbox)
            return nil
        case .listing(let command):
            if command.listing.byteCount > Server.smallListingByteCount {
                command.connection.share.account?.largeListing = command
            }
            let isDone = keyspace.withCore {
                services.listings.goOn(command, until: turn.sliceEnd, $0)
            }
            if !isDone { unfinished.items.append(work) }
            count(command.connection)
            return command.connection
        }
    }

    /// Delivers messages for a slice, which is charged to their user.
    private func goOn(with outbox: Outbox) {
        let start = clinux_monotonic_nanoseconds()
        var (now, isDone) = (start, false)
        keyspace.withCore { _ in
            repeat {
                var steps = 64
                isDone = services.channels.deliver(outbox, atMost: &steps)
                now = clinux_monotonic_nanoseconds()
            } while !isDone && now < turn.sliceEnd
        }
        registry.memory.count(outbox)
        let used = now - start - services.channels.takeNanosecondsOfReceivers()
        outbox.account.nanoseconds += used
        outbox.restEnd = now + 3 * used
        guard isDone else { return unfinished.items.append(.messages(outbox)) }
        outbox.isInSlices = false
        guard let publisher = outbox.publisher, !publisher.isClosed else { return }
        publisher.inbound.awaitsLateReply = false
        services.gate.endWait(of: publisher)
        flushes.add(publisher)
    }

    /// Removes and returns the next work: the oldest of the user who has used the least; nil if all
    /// of it rests.
    private func takeUnfinished(at now: Int64) -> Unfinished? {
        var least: Int?
        for index in unfinished.items.indices
        where
            !unfinished.items[index].isClosed && !isResting(unfinished.items[index], at: now)
            && !waitsForMemory(unfinished.items[index])
        {
            guard let found = least else {
                least = index
                continue
            }
            if unfinished.items[index].usedNanoseconds < unfinished.items[found].usedNanoseconds {
                least = index
            }
        }
        return least.map { unfinished.items.remove(at: $0) }
    }

    /// Charges the user of a connection for the time since the last lap of the stopwatch.
    private func charge(_ connection: Connection?, _ stopwatch: inout Stopwatch) {
        let used = max(0, stopwatch.lap() - services.channels.takeNanosecondsOfReceivers())
        guard let connection, let account = connection.share.account else { return }
        var longest = longestRest
        if used > Rest.long, keyspace.withCore({ $0.adminDenial(of: connection.subject) == nil }) {
            longest = 0
        }
        account.charge(used, at: stopwatch.now, longestRest: longest)
    }
}

/// Unfinished work at the end of slices, which continues after the events.
///
/// Used only by the loop thread.
final class UnfinishedWork {
    var items: [Unfinished] = []
    /// The connections with an incomplete command.
    let frames = FrameTimer()
    /// Events that wait to be handled.
    var events: [Poller.Event] = []
    /// When it last continued, on the monotonic clock in nanoseconds.
    var wentOnAt: Int64 = 0
}

/// Unfinished work of a connection, or postponed work of a user.
enum Unfinished {
    /// New clients.
    case arrivals(Arrivals)
    /// Events that came while a user rested; see ``ClientMemory/Account/takePostponed()``.
    case events(ClientMemory.Account)
    /// Input that is not executed yet.
    case input(Connection)
    case leftovers(Leftovers.Pile)
    case listing(ListingCommand)
    /// Messages that many receive, or that are compared with many globs.
    case messages(Outbox)
    /// Output that the socket may accept.
    case output(Connection)

    /// Nil for what is of several connections, and for new clients.
    private var connection: Connection? {
        switch self {
        case .arrivals, .events, .leftovers, .messages: nil
        case .input(let connection), .output(let connection): connection
        case .listing(let command): command.connection
        }
    }

    var isClosed: Bool { connection?.isClosed ?? false }

    /// Nil for a closed connection, and for new clients, whose user is not known yet.
    var account: ClientMemory.Account? {
        switch self {
        case .events(let account): account
        case .leftovers(let pile): pile.connection.share.account
        case .messages(let outbox): outbox.account
        case .arrivals, .input, .listing, .output: connection?.share.account
        }
    }

    /// The time that its user has used recently.
    var usedNanoseconds: Int64 { account?.nanoseconds ?? 0 }

    /// How long it rests if others are served, on the monotonic clock in nanoseconds.
    var restEnd: Int64 {
        switch self {
        case .arrivals(let arrivals): return arrivals.restEnd
        case .leftovers(let pile): return pile.restEnd
        case .messages(let outbox): return outbox.restEnd
        case .events, .input, .listing, .output: break
        }
        return account.map { max($0.rest.end, $0.rest.debtEnd) } ?? 0
    }
}

/// The processor time of this thread, in nanoseconds.
enum ProcessorClock {
    static var nanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
