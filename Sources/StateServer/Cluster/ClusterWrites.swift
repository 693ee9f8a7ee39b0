import CLinux
import StateEngine
import StateWire

/// A command that waits for the cluster.
///
/// Used only by the loop thread.
final class ClusterWrite {
    let connection: Connection
    /// Carries the command out.
    let run: (inout CommandContext) throws(StateError) -> Void
    /// Whether EXEC does nothing if what it had read has changed.
    let hasWatched: Bool
    /// When it came, on the monotonic clock in milliseconds.
    let since = SystemClock.monotonicMilliseconds()
    /// What it did when it was carried out last.
    var attempt: ClusterAttempt
    /// The newest revision here when it was carried out last.
    var triedAt: Int64 = 0
    /// When that was.
    var moment: ClusterUse.Moment
    /// How often what it had read had changed.
    var failureCount = 0
    /// Whether its client has the answer that the outcome is unknown.
    var isAnswered = false
    /// Whether it goes alone: it takes long, or the cluster has refused it together with others.
    var isAlone: Bool

    init(
        _ offer: ClusterOffer,
        _ connection: Connection,
        at moment: ClusterUse.Moment,
        _ run: @escaping (inout CommandContext) throws(StateError) -> Void
    ) {
        self.moment = moment
        (attempt, hasWatched, isAlone) = (offer.attempt, offer.hasWatched, offer.isLong)
        (self.connection, self.run) = (connection, run)
    }

    /// Whether somebody still waits for it.
    var isAwaited: Bool { !isAnswered && !connection.isClosed }
}

/// The commands that change keys of a cluster, on their way to it.
///
/// A command is carried out here, what it did is undone and sent with what it had read; when the
/// cluster has made the changes and they come back in its stream, it is carried out again at that
/// place. One batch is under way; what comes meanwhile waits, and is carried out anew for the next.
///
/// Used only by the loop thread, under the keyspace's lock.
final class ClusterWrites {
    unowned let mirror: Mirror
    let gate: ReplyGate
    var waiting: [ClusterWrite] = []
    /// Keys that have ended by themselves and are still there; after a failure they come again.
    var ended: [[UInt8]] = []
    /// Whether there was no room for any of them in the last batch.
    private var isEndedOwed = false
    /// What the link has sent, or is about to.
    private(set) var batch: Batch?
    /// What the link can send at once; nil until it has said that it can.
    private(set) var bounds: Bounds?
    private var nextNumber = Int64.random(in: 1 << 40..<1 << 60)
    /// Commands that were answered with an unknown outcome, and what it was.
    var doubts = (asked: 0, committed: 0, notCommitted: 0)

    /// Commands that the cluster decides together.
    struct Batch {
        let number: Int64
        let writes: [ClusterWrite]
        /// Whether the cluster decides more than one of them together.
        let isShared: Bool
    }

    /// What etcd takes in one transaction.
    struct Bounds {
        var operationCount: Int
        var byteCount: Int
    }

    /// How long commands are tried for one batch, in nanoseconds: others wait meanwhile.
    private static let tryNanoseconds: Int64 = 500_000
    /// How often a command is tried if what it had read changes.
    private static let failureLimit = 16
    /// How long a client waits, in milliseconds.
    static let patience: Int64 = 10_000

    init(_ mirror: Mirror, _ gate: ReplyGate) { (self.mirror, self.gate) = (mirror, gate) }

    var waitingCount: Int { waiting.count + (batch?.writes.count { !$0.isAnswered } ?? 0) }

    // MARK: In

    /// Takes a command of so many bytes; its connection waits.
    func take(
        _ offer: ClusterOffer,
        _ connection: Connection,
        _ core: KeyspaceCore,
        byteCount: Int = 0,
        _ run: @escaping (inout CommandContext) throws(StateError) -> Void
    ) {
        connection.inbound.awaitsLateReply = true
        let write = ClusterWrite(offer, connection, at: core.moment(at: gate.turn.time), run)
        write.triedAt = core.newestRevision
        connection.inbound.offeredByteCount = byteCount + write.attempt.byteCount
        gate.timers.advance(.cluster, to: write.since + ClusterWrites.patience)
        waiting.append(write)
    }

    // MARK: Out

    /// Whether the next batch can be sent.
    var canSend: Bool { batch == nil && bounds != nil && !(waiting.isEmpty && ended.isEmpty) }

    /// Sends the next batch: what came while the one before was under way, or in this turn.
    func form(_ core: KeyspaceCore) {
        guard canSend, let bounds else { return }
        var forming = FormingBatch(bounds, endedCount: ended.count)
        let isTheirs = isEndedOwed
        if isTheirs { addEnded(to: &forming, core) }
        if forming.attempts.isEmpty {
            addWaiting(to: &forming, bounds, core)
            addEnded(to: &forming, core)
        }
        isEndedOwed =
            !isTheirs && !ended.isEmpty && forming.attempts.count == forming.writes.count
        if !forming.attempts.isEmpty { send(forming, core) }
    }

    private func addWaiting(
        to forming: inout FormingBatch,
        _ bounds: Bounds,
        _ core: KeyspaceCore
    ) {
        var kept: [ClusterWrite] = []
        let deadline = clinux_monotonic_nanoseconds() + ClusterWrites.tryNanoseconds
        for (index, write) in waiting.enumerated() {
            guard index == 0 || clinux_monotonic_nanoseconds() < deadline, !forming.hasAllCommands
            else {
                kept += waiting[index...]
                break
            }
            guard write.isAwaited else { continue }
            // It was computed on what is there now, or is anew.
            if write.triedAt != core.newestRevision, !carryOut(write, .again, core) { continue }
            if !bounds.allow(write.attempt) {
                fail(write, bounds.excess(of: write.attempt), core)
            } else if !forming.add(write) {
                kept.append(write)
            }
        }
        waiting = kept
    }

    /// Carries a command out; if that changes nothing in the cluster, it is answered.
    ///
    /// - Returns: Whether the cluster must decide.
    private func carryOut(
        _ write: ClusterWrite,
        _ round: ClusterOffer.Round,
        _ core: KeyspaceCore
    ) -> Bool {
        let connection = write.connection
        let start = connection.outbound.bytes.count
        var context = CommandContext(connection, in: core, at: gate.turn.time)
        context.round = round
        do throws(StateError) {
            try write.run(&context)
        } catch {
            gate.refuse(error, from: start, context)
        }
        defer { gate.turn.note(&context) }
        if context.isExecuting { context.endExecution() }
        if let offer = context.takeOffer() {
            connection.outbound.bytes.truncate(to: start)
            (write.attempt, write.triedAt) = (offer.attempt, core.newestRevision)
            write.moment = core.moment(at: gate.turn.time)
            return true
        }
        endWaiting(connection)
        gate.send(from: start, &context)
        return false
    }

    /// The connection gets its reply now.
    func endWaiting(_ connection: Connection) {
        connection.inbound.awaitsLateReply = false
        connection.inbound.offeredByteCount = 0
    }

    private func send(_ forming: FormingBatch, _ core: KeyspaceCore) {
        guard let link = mirror.link else {
            pause()
            waiting = forming.writes + waiting
            return
        }
        nextNumber += 1
        let isShared = forming.attempts.count > 1
        batch = Batch(number: nextNumber, writes: forming.writes, isShared: isShared)
        var context = CommandContext(link, in: core, at: gate.turn.time)
        let position = context.position(of: mirror).revision
        context.output.write(forming.attempts, number: nextNumber, at: position)
        gate.flushFirst(link)
    }

    // MARK: The link

    /// The link sends what it is given from now on; what an earlier one had sent and has not come
    /// by now, the cluster does not have.
    func begin(_ bounds: Bounds) {
        self.bounds = bounds
        if let batch {
            self.batch = nil
            for write in batch.writes where write.isAnswered {
                settleDoubt(write, isCommitted: false)
            }
            waiting = batch.writes.filter(\.isAwaited) + waiting
        }
    }

    /// The link is gone, or has lost the cluster: what is under way may have been decided.
    func pause() { bounds = nil }

    /// The history between was not seen: nobody knows what became of the batch.
    func lose(_ core: KeyspaceCore) {
        bounds = nil
        guard let batch else { return }
        self.batch = nil
        for write in batch.writes where !write.isAnswered { doubt(write, core) }
    }

    /// The cluster has refused the batch, and changed nothing.
    func refuse(_ number: Int64, _ error: StateError, _ core: KeyspaceCore) {
        guard let batch, batch.number == number else { return }
        self.batch = nil
        // Its client has its answer: the log says what it was.
        for write in batch.writes where write.isAnswered { settleDoubt(write, isCommitted: false) }
        if batch.isShared {
            // It may be because of one of them.
            for write in batch.writes { write.isAlone = true }
            waiting = batch.writes.filter(\.isAwaited) + waiting
        } else {
            for write in batch.writes { fail(write, error, core) }
        }
    }

    // MARK: Decided

    /// The batch has come in the stream, and its commit has ended here.
    ///
    /// - Parameters:
    ///   - made: The commands whose changes the cluster has made, answered already.
    ///   - core: The keyspace.
    func end(made: Set<ObjectIdentifier>, _ core: KeyspaceCore) {
        guard let batch else { return }
        self.batch = nil
        var again: [ClusterWrite] = []
        for write in batch.writes {
            let isMade = made.contains(ObjectIdentifier(write))
            if write.isAnswered { settleDoubt(write, isCommitted: isMade) }
            guard !isMade, write.isAwaited else { continue }
            if write.attempt.changes.isEmpty {
                if carryOut(write, .confirmed, core) { again.append(write) }
            } else if write.hasWatched {
                answer(write, core) { $0.output.writeNullArray($0.version) }
            } else {
                write.failureCount += 1
                guard write.failureCount < ClusterWrites.failureLimit else {
                    fail(write, ClusterWrites.contended, core)
                    continue
                }
                again.append(write)
            }
        }
        waiting = again + waiting
    }

    private static let contended = StateError(
        .conflict,
        "other machines changed what the command read, \(failureLimit) times in turn: try again"
    )
}
