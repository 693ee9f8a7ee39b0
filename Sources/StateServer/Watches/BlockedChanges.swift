import StateEngine
import StateWire

/// What a STATE.CHANGES asks for, with bytes of its own.
struct ChangesRequest: Sendable {
    let patterns: PatternSet
    let options: Options
    let version: ProtocolVersion
    let byteLimit: Int
    /// Who asks, for what is done under the lock.
    let subject: Subject
    /// What may be seen, for the history thread; nil for everything.
    let view: Visibility
    /// How often the rules of access had changed when it was asked.
    let accessCount: Int
    /// Whether the caller tells which store it knows, and so is told which one this is.
    let includesEpoch: Bool

    /// The options that hold no borrowed bytes.
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

/// A STATE.CHANGES with BLOCK: notes what becomes durable from its beginning on, and is answered with it.
///
/// While the history is read for it, it only notes; should the history have nothing, nothing was missed meanwhile.
/// Everything belongs to the loop thread, under the keyspace's lock.
final class BlockedChanges {
    let connection: Connection
    let request: ChangesRequest
    /// On the monotonic clock, in milliseconds; `max`: never.
    let deadline: Int64
    private var reply: ChangesReply
    private var failure: StateError?
    private var subscription: CommitSubscription?
    /// Nothing is read for it any more: it is answered as soon as there is something.
    var isWaiting = false

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
        subscription = CommitSubscription(request.patterns, for: request.subject, in: core) {
            [unowned self] revision, changes, _ in
            note(revision, changes)
            if isWaiting { wake(self) }
        }
    }

    /// About how much memory it takes.
    var byteCount: Int { reply.footprint }

    /// Whether there is something to tell.
    var hasSomething: Bool { !reply.isEmpty || failure != nil }

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

    /// Writes what came, or that nothing has.
    func writeReply(_ core: KeyspaceCore) throws(StateError) {
        if let failure { throw failure }
        reply.advance(to: core.revisions.durable)
        reply.write(
            to: &connection.outbound.bytes,
            epoch: request.includesEpoch ? core.epoch : nil
        )
    }
}

/// The STATE.CHANGES that wait for a commit or for their time to be over.
///
/// Everything belongs to the loop thread.
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

    /// Whether one is to be answered.
    var hasReady: Bool { !woken.isEmpty }

    /// Takes out those for whom something has come, and those whose time is over.
    func takeReady() -> [BlockedChanges] {
        defer { woken = [] }
        return woken.filter { waiting.removeValue(forKey: $0.connection.number) != nil }
    }

    /// Has those answered whose time is over.
    ///
    /// - Parameter now: On the monotonic clock, in milliseconds; `max`: the time of all is over.
    /// - Complexity: O(*n*) in those that wait, if the time of one may be over.
    func expire(at now: Int64) {
        defer { timers.set(.changes, at: earliest) }
        guard now >= earliest else { return }
        woken += waiting.values.filter { $0.deadline <= now }
            .sorted { $0.connection.number < $1.connection.number }
        earliest = waiting.values.lazy.map(\.deadline).filter { $0 > now }.min() ?? .max
    }
}
