import CLinux
import StateEngine
import StateWire

/// The memory that clients take, by user: input that is not executed yet, output, results of reads,
/// watches, and messages on their way.
///
/// A connection is counted again when its buffers may have changed, never by a walk over all
/// connections. Used only by the loop thread.
final class ClientMemory {
    /// The connections of one user, and their total memory.
    final class Account {
        let uid: UInt32
        fileprivate(set) var byteCount = 0
        fileprivate(set) var inputByteCount = 0
        fileprivate(set) var connections: [Int: Connection] = [:]
        /// Loop time used, with exponential decay: the user with less goes first.
        var nanoseconds: Int64 = 0
        /// The time of one event, as a moving average.
        private(set) var eventNanoseconds: Int64 = 0
        /// Until its end the user is not served, if others are.
        var rest = Rest()
        /// In how many turns its events waited since one of them was handled.
        var turnsWaited: Int64 = 0
        /// The large listing that continues: one at a time.
        weak var largeListing: ListingCommand?
        /// Globs of its watches and subscriptions.
        var globCount = 0
        /// Patterns of its watches and subscriptions, and of STATE.CHANGES that wait.
        private(set) var patternCount = 0
        /// What others wait for while messages are compared with its subscriptions: 25 µs at once if its
        /// globs have many classes, and a seventh of a processor in the long run.
        let messages = GlobAllowance(fullStepCount: 4 << 10, nanosecondsPerStep: 40)

        /// How many of its connections have replies that wait for the disk.
        fileprivate(set) var holdingCount = 0
        /// Its changes that may not be on disk yet: up to which revision, and their bytes.
        private var unstored: (changes: [(revision: Int64, byteCount: Int)], byteCount: Int) =
            ([], 0)

        /// Connections with an event that came while the user rested: one list with the newest
        /// last, one with the oldest last.
        private var postponed: (new: [Connection], old: [Connection]) = ([], [])

        init(uid: UInt32) { self.uid = uid }

        /// Charges the user for time of the loop, or of a thread that worked for the user, in
        /// nanoseconds.
        func charge(_ used: Int64, at now: Int64, longestRest: Int64) {
            nanoseconds += used
            rest.note(used, at: now, longest: longestRest)
        }

        /// Counts the patterns of a watch that begins (1) or ends (-1).
        func noteWatched(_ patterns: PatternSet, by sign: Int) {
            globCount += sign * patterns.globCount
            patternCount += sign * patterns.patterns.count
        }

        /// Counts a subscription that begins (1) or ends (-1).
        func noteSubscribed(_ channel: Channel, by sign: Int) {
            globCount += sign * channel.globCount
            if channel.kind == .pattern { patternCount += sign }
        }

        func noteEvent(_ used: Int64) { eventNanoseconds += (used - eventNanoseconds) / 8 }

        /// Records a commit of so many bytes.
        func noteWritten(_ byteCount: Int, at revision: Int64) {
            unstored.byteCount += byteCount
            let last = unstored.changes.count - 1
            if last >= 0, unstored.changes[last].byteCount < 64 << 10 {
                unstored.changes[last] = (revision, unstored.changes[last].byteCount + byteCount)
            } else {
                unstored.changes.append((revision, byteCount))
            }
        }

        /// Whether changes of at least `byteCount` bytes are not on disk yet.
        ///
        /// - Complexity: O(1) amortized.
        func hasUnstored(_ byteCount: Int, durable revision: Int64) -> Bool {
            guard unstored.byteCount >= byteCount else { return false }
            let stored = unstored.changes.prefix { $0.revision <= revision }
            unstored.byteCount -= stored.reduce(0) { $0 + $1.byteCount }
            unstored.changes.removeFirst(stored.count)
            return unstored.byteCount >= byteCount
        }

        var hasPostponed: Bool { postponedCount > 0 }
        var postponedCount: Int { postponed.new.count + postponed.old.count }

        /// Adds a connection whose event waits.
        ///
        /// - Returns: Whether it is the only one.
        func postpone(_ connection: Connection) -> Bool {
            defer { postponed.new.append(connection) }
            return !hasPostponed
        }

        /// Removes and returns the connection that has waited the longest.
        ///
        /// - Complexity: O(1), amortized.
        func takePostponed() -> Connection? {
            if postponed.old.isEmpty {
                postponed.old = postponed.new.reversed()
                postponed.new = []
            }
            return postponed.old.popLast()
        }

        /// The connection with the largest `byteCount`; nil if all are 0.
        ///
        /// - Complexity: O(*n*) in the user's connections.
        func greediest(by byteCount: (Connection) -> Int) -> Connection? {
            let found = connections.values.max { byteCount($0) < byteCount($1) }
            return found.flatMap { byteCount($0) > 0 ? $0 : nil }
        }
    }

    private(set) var accounts: [UInt32: Account] = [:]
    /// What the connections have done, for STATE.METRICS.
    var users = UserStatistics()
    private var agedAt: Int64 = 0
    /// The last two users whose events were handled, and when.
    private var served: (last: Account?, lastAt: Int64, former: Account?, formerAt: Int64) =
        (nil, 0, nil, 0)
    /// The memory of all clients, in bytes.
    private(set) var byteCount = 0
    /// The most that it was since freed memory was last returned to the kernel.
    private var peakByteCount = 0
    /// The part of it that is input not executed yet.
    private(set) var inputByteCount = 0
    /// Its limit.
    var byteLimit: Int
    /// How many connections were ended and replies refused because of the limit.
    var refusedCount = 0
    /// Whether a connection waits for memory.
    var isAwaited = false

    init(byteLimit: Int) { self.byteLimit = byteLimit }

    // MARK: Connections

    func add(_ connection: Connection) {
        let uid = connection.peer.uid
        let account = accounts[uid] ?? Account(uid: uid)
        accounts[uid] = account
        account.connections[connection.number] = connection
        connection.share.account = account
        users.noteBegin(connection)
        count(connection)
    }

    func remove(_ connection: Connection) {
        guard let account = connection.share.account else { return }
        users.noteEnd(connection)
        note(0, input: 0, connection, account)
        // The account stays for a while: a user who reconnects must not lose the record of used
        // time.
        account.connections[connection.number] = nil
    }

    func account(of uid: UInt32) -> Account? { accounts[uid] }

    func connectionCount(of uid: UInt32) -> Int { accounts[uid]?.connections.count ?? 0 }

    /// Updates the count for a connection.
    func count(_ connection: Connection) {
        guard let account = connection.share.account, !connection.isClosed else { return }
        note(
            connection.byteCount,
            input: connection.unfinishedByteCount,
            connection,
            account
        )
    }

    private func note(
        _ bytes: Int,
        input: Int,
        _ connection: Connection,
        _ account: Account
    ) {
        let (more, moreInput) = (
            bytes - connection.share.byteCount, input - connection.share.inputByteCount
        )
        guard more != 0 || moreInput != 0 else { return }
        connection.share.byteCount = bytes
        connection.share.inputByteCount = input
        account.byteCount += more
        account.inputByteCount += moreInput
        byteCount += more
        inputByteCount += moreInput
        peakByteCount = max(peakByteCount, byteCount)
    }

    /// Updates the count for messages on their way.
    func count(_ outbox: Outbox) {
        let more = outbox.byteCount - outbox.countedByteCount
        guard more != 0 else { return }
        outbox.countedByteCount += more
        outbox.account.byteCount += more
        byteCount += more
        peakByteCount = max(peakByteCount, byteCount)
    }

    /// Whether so much was freed that it should be returned to the kernel.
    var hasFreedMuch: Bool { peakByteCount - byteCount >= 32 << 20 }

    func noteReturned() { peakByteCount = byteCount }

    // MARK: Time

    /// In nanoseconds.
    private static let halfLife: Int64 = 100_000_000

    /// Lets used time decay.
    func age(at now: Int64) {
        guard now - agedAt >= ClientMemory.halfLife else { return }
        agedAt = now
        for account in accounts.values {
            account.nanoseconds /= 2
            account.rest.age()
        }
        // Messages of a user who has left may still be on their way, and debts stay until they are paid.
        for (uid, account) in accounts
        where account.connections.isEmpty && account.nanoseconds < 1_000 && account.rest.end < now
            && account.byteCount == 0 && account.messages.isFull(at: now)
        {
            accounts[uid] = nil
        }
    }

    /// Records the user whose event was handled.
    func noteServed(_ account: Account, at now: Int64) {
        if served.last !== account {
            (served.former, served.formerAt) = (served.last, served.lastAt)
            served.last = account
        }
        served.lastAt = now
    }

    /// The last user other than that of `account` whose event was handled since `moment`.
    func other(than account: Account, servedSince moment: Int64) -> Account? {
        let isLast = served.last === account
        let (other, at) =
            isLast ? (served.former, served.formerAt) : (served.last, served.lastAt)
        return at >= moment ? other : nil
    }

    // MARK: Waiting for the disk

    private var holdingAccountCount = 0

    /// Records that a connection has replies that wait for the disk, or has none any more.
    func noteHolding(_ connection: Connection, begins: Bool) {
        guard let account = connection.share.account else { return }
        if begins, account.holdingCount == 0 { holdingAccountCount += 1 }
        account.holdingCount += begins ? 1 : -1
        if account.holdingCount == 0 { holdingAccountCount -= 1 }
    }

    /// Whether another user waits for the disk.
    func isDiskAwaited(byOtherThan account: Account) -> Bool {
        holdingAccountCount > (account.holdingCount > 0 ? 1 : 0)
    }

    /// Users who are connected, or were recently.
    var userCount: Int { accounts.count }

    // MARK: Waiting and refusing

    /// Whether large replies of users above their share wait.
    ///
    /// The largest reply has half the room, so it always fits.
    var isTight: Bool { byteCount > tightByteCount }

    var tightByteCount: Int { byteLimit / 2 }
}

extension Connection {
    /// Whether its memory is as it was counted last, which is so after most commands.
    var isCounted: Bool {
        inbound.bytes.count == share.inputByteCount && !hasWorkUnderWay
            && plainByteCount == share.byteCount
    }

    /// Its memory, apart from a constant part.
    fileprivate var byteCount: Int { plainByteCount + (hasWorkUnderWay ? workByteCount : 0) }

    private var plainByteCount: Int {
        let coming =
            inbound.bytes.footprint + inbound.parser.footprint + 2 * inbound.offeredByteCount
        return coming + outbound.bytes.footprint + outbound.held.footprint + sessionByteCount
    }

    /// Whether there is more than buffers and the session, which is rare.
    private var hasWorkUnderWay: Bool {
        session.transaction != nil || watches.owed != nil || inbound.blocked != nil
            || inbound.listing != nil || watches.reader != nil || !inbound.jobs.isEmpty
    }

    @inline(never)
    private var workByteCount: Int {
        var sum = session.transaction?.footprint ?? 0
        sum += watches.owed?.byteCount ?? 0
        sum += inbound.blocked?.byteCount ?? 0
        sum += inbound.listing?.listing.byteCount ?? 0
        sum += watches.reader?.keptByteCount ?? 0
        for job in inbound.jobs { sum += job.control.byteCount + job.meanwhileByteCount }
        return sum
    }

    /// The memory of watches, subscriptions and WATCH.
    private var sessionByteCount: Int {
        watches.byteCount + session.subscriptions.byteCount + session.watchedKeyByteCount
            + (session.tracking?.byteCount ?? 0)
    }
}

/// How long a user is not served after long work, while others are.
///
/// If the loop never sleeps, the kernel makes other processes wait: GETs of 10 clients on two
/// processors had a p99 of 6 ms beside slices of 0.25 ms in a row, and of 0.3 ms without them. So a
/// user rests three times as long as it was served. A user who repeats commands that cannot be
/// interrupted and take much longer than a slice rests longer: these commands, their input and
/// their storage work then take less than a hundredth of the time. (MULTI of 2,000 SETs, EXEC 0.45
/// ms: a rest 300 times as long doubled the p99 of others' GETs, 900 times as long made it 1.4
/// times.)
package struct Rest {
    /// On the monotonic clock, in nanoseconds.
    package private(set) var end: Int64 = 0
    /// The same for many short events in a row.
    package private(set) var debtEnd: Int64 = 0
    /// The time beyond slices, with exponential decay.
    private var longSum: Int64 = 0

    /// Recently used time; it decreases by a quarter of the time that passes.
    private var debt: Int64 = 0
    private var notedAt: Int64 = 0

    /// A shorter event needs no rest, unless many come in a row.
    private static let short: Int64 = 25_000
    /// So much short work is free, such as GETs of 10 clients that come at once.
    private static let freeDebt: Int64 = 120_000
    /// The longest slice, including its end and its writes.
    package static let long: Int64 = 150_000
    /// The rest is so many times as long as the excess over that.
    private static let factor: Int64 = 900
    /// So much long work is free, such as a large command now and then.
    private static let free: Int64 = 1_000_000

    package init() {}

    /// Records that the user was served for so many nanoseconds.
    ///
    /// - Parameters:
    ///   - used: How long.
    ///   - now: On the monotonic clock.
    ///   - longest: The longest rest after work longer than a slice; 0 for none.
    package mutating func note(_ used: Int64, at now: Int64, longest: Int64) {
        debt = max(0, debt - (now - notedAt) / 4) + used
        notedAt = now
        if debt > Rest.freeDebt { debtEnd = max(debtEnd, now + 3 * used) }
        guard used > Rest.short else { return }
        var pause = 3 * used
        if used > Rest.long {
            longSum += used
            if longSum > Rest.free {
                pause = max(pause, min(pause + Rest.factor * (used - Rest.long), longest))
            }
        }
        end = max(end, now + pause)
    }

    package mutating func age() { longSum /= 2 }
}
