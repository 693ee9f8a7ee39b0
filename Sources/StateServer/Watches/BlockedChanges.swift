import StateEngine
import StateWire

/// The request of a STATE.CHANGES, with its own copy of the bytes.
struct ChangesRequest: Sendable {
    let patterns: PatternSet
    let options: Options
    let version: ProtocolVersion
    let byteLimit: Int
    /// What the subject may see, for the history thread; nil for everything.
    let view: Visibility
    /// How often the access rules had changed at the request.
    let accessCount: Int
    /// Whether the request has an EPOCH, so that the reply has one, too.
    let includesEpoch: Bool

    /// The options without borrowed bytes.
    struct Options: Sendable {
        var since: Int64
        var count: Int
        var includesPrevious: Bool

        init(_ options: Command.ChangesOptions) {
            since = options.since
            count = options.count
            includesPrevious = options.includesPrevious
        }
    }

    func makeReply() -> ChangesReply {
        ChangesReply(after: options.since, options, version, byteLimit: byteLimit)
    }
}

/// A STATE.CHANGES with BLOCK: collects the commits that become durable after its start, for its
/// reply.
///
/// While the history is read for it, it only collects, so that nothing is missed if the history has
/// no commits. Used only by the loop thread, under the keyspace's lock.
final class BlockedChanges {
    let connection: Connection
    let request: ChangesRequest
    /// On the monotonic clock, in milliseconds; `max`: never.
    let deadline: Int64
    private var reply: ChangesReply
    private var failure: StateError?
    private var subscription: CommitSubscription?
    /// Later commits were not collected: the client asks for them again; nil if all are.
    private var collectedThrough: Int64?
    /// Whether the read of the history is over: it is answered at the next commit.
    var isWaiting = false
    /// CLIENT UNBLOCK asks for an error.
    var isUnblockedWithError = false

    init(
        _ request: ChangesRequest,
        until deadline: Int64,
        for connection: Connection,
        in core: KeyspaceCore,
        _ wake: @escaping (BlockedChanges) -> Void
    ) {
        self.request = request
        self.deadline = deadline
        self.connection = connection
        reply = request.makeReply()
        subscription = CommitSubscription(
            request.patterns,
            for: connection.subject,
            in: core,
            fallBehind: { [unowned self] revision in
                collectedThrough = revision
                if isWaiting { wake(self) }
            },
            { [unowned self] revision, changes, _ in
                note(revision, changes)
                if isWaiting { wake(self) }
            }
        )
    }

    /// Its approximate memory.
    var byteCount: Int { reply.footprint + request.patterns.byteCount }

    /// Whether there is something to reply.
    var hasSomething: Bool { !reply.isEmpty || failure != nil || collectedThrough != nil }

    private func note(_ revision: Int64, _ changes: [Record]) {
        guard failure == nil else { return }
        do throws(StateError) {
            for change in changes {
                try reply.add(
                    change.key,
                    change.value,
                    previous: change.older?.value,
                    at: revision
                )
            }
            reply.endCommit(revision)
        } catch {
            failure = error
        }
    }

    func end(in core: KeyspaceCore) {
        subscription?.end(in: core)
        subscription = nil
    }

    /// Writes the collected commits, or that there are none.
    func writeReply(_ core: KeyspaceCore) throws(StateError) {
        if let failure { throw failure }
        if isUnblockedWithError {
            throw StateError(
                StateError.Code("UNBLOCKED"),
                "client unblocked via CLIENT UNBLOCK"
            )
        }
        reply.advance(to: collectedThrough ?? core.revisions.durable)
        reply.write(
            to: &connection.outbound.bytes,
            epoch: request.includesEpoch ? core.epoch : nil
        )
    }
}

/// The STATE.CHANGES that wait for a commit or the end of their time.
///
/// Used only by the loop thread.
final class BlockedList {
    private var waiting: [Int: BlockedChanges] = [:]
    private var woken: [BlockedChanges] = []
    /// No deadline is before this one.
    private var earliest = Int64.max
    private let timers: TimerQueue

    init(_ timers: TimerQueue) { self.timers = timers }

    func add(_ blocked: BlockedChanges) {
        waiting[blocked.connection.number] = blocked
        earliest = min(earliest, blocked.deadline)
        timers.advance(.changes, to: earliest)
    }

    func remove(_ blocked: BlockedChanges) { waiting[blocked.connection.number] = nil }

    /// Has one answered in the next turn, or earlier.
    func wake(_ blocked: BlockedChanges) {
        woken.append(blocked)
        timers.advance(.changes, to: 0)
    }

    /// Whether one must be answered.
    var hasReady: Bool { !woken.isEmpty }

    /// Removes and returns those that have a commit and those whose time has passed.
    func takeReady() -> [BlockedChanges] {
        defer { woken = [] }
        return woken.filter { waiting.removeValue(forKey: $0.connection.number) != nil }
    }

    /// Wakes those whose time has passed.
    ///
    /// - Parameter now: On the monotonic clock, in milliseconds; `max`: the time of all has passed.
    /// - Complexity: O(*n*) in those that wait, if the time of one may have passed.
    func expire(at now: Int64) {
        defer { timers.set(.changes, at: earliest) }
        guard now >= earliest else { return }
        woken += waiting.values.filter { $0.deadline <= now }
            .sorted { $0.connection.number < $1.connection.number }
        earliest = waiting.values.lazy.map(\.deadline).filter { $0 > now }.min() ?? .max
    }
}
