import StateEngine
import StateWire

/// A commit of the cluster: what commands that wait here have changed in it, what is signed by
/// writers elsewhere, and the rest.
struct ClusterDecision {
    /// The changes of a command that waits here.
    private struct Made {
        let write: ClusterWrite
        let changes: [[UInt8]: ClusterAttempt.Decided]
    }

    private let changes: [Command.MirrorChange]
    private let time: Int64
    private var made: [Made] = []
    private var signed: [(cause: Cause, isHere: Bool, changes: [Command.MirrorChange])] = []
    private var others: [Command.MirrorChange] = []
    /// Whether the batch that is under way is in it.
    private(set) var endsBatch = false
    /// The replies that are written: where each begins.
    private var replies: [(write: ClusterWrite, start: Int)] = []
    private var causes: [InternedCause] = []

    init(
        _ changes: [Command.MirrorChange],
        signedBy writers: Command.MirrorWriters?,
        _ mirror: Mirror,
        _ batch: ClusterWrites.Batch?,
        at time: Int64
    ) {
        (self.changes, self.time) = (changes, time)
        guard let writers else {
            others = changes
            return
        }
        var left: [[UInt8]: Int] = [:]
        for (index, change) in changes.enumerated() { left[Array(change.key)] = index }
        func take(_ keys: some Sequence<[UInt8]>) -> [Command.MirrorChange] {
            keys.compactMap { left.removeValue(forKey: $0) }.sorted().map { changes[$0] }
        }
        let isHere = writers.node.text == mirror.options.node
        if isHere, let batch, batch.number == writers.number {
            endsBatch = true
            for write in batch.writes {
                let own = take(write.attempt.changes.lazy.map(\.key))
                guard !own.isEmpty else { continue }
                var decided: [[UInt8]: ClusterAttempt.Decided] = [:]
                for change in own {
                    decided[Array(change.key)] = (change.value, change.version, change.expires)
                }
                made.append(Made(write: write, changes: decided))
            }
        }
        // Behind the commands of the batch are the keys that have ended by themselves.
        let commandCount = endsBatch ? batch?.writes.count ?? 0 : 0
        for line in writers.lines.dropFirst(commandCount) {
            // It may be no signature at all.
            guard var cause = Cause(line.cause) else { continue }
            let own = line.keys.first == Array("*".utf8) ? take(Array(left.keys)) : take(line.keys)
            guard !own.isEmpty else { continue }
            if !isHere { cause.command += "@\(writers.node.text)" }
            signed.append((cause, isHere, own))
        }
        others = left.values.sorted().map { changes[$0] }
    }

    /// Makes the changes in the open transaction, in the order of their writers.
    mutating func make(
        _ transaction: inout Transaction,
        _ core: KeyspaceCore,
        by link: InternedCause
    ) throws(StateError) {
        for made in made { try make(made, &transaction, core) }
        for part in signed {
            let cause = core.retainCause(part.cause)
            causes.append(cause)
            if part.cause.isExpiry { core.noteExpired(part.changes.count) }
            // An owner is one of this machine: a uid of another is its claim.
            core.goOnDecided(by: cause, owner: part.isHere ? nil : link.cause.uid)
            try make(part.changes, &transaction)
        }
        if !made.isEmpty || !signed.isEmpty { core.goOnDecided(by: link, owner: nil) }
        try make(others, &transaction)
    }

    private func make(
        _ changes: [Command.MirrorChange],
        _ transaction: inout Transaction
    ) throws(StateError) {
        for change in changes {
            try transaction.mirror(
                change.key,
                change.value,
                version: change.version,
                expires: change.expires
            )
        }
    }

    /// Carries a command out at its place, which writes its reply.
    private mutating func make(
        _ made: Made,
        _ transaction: inout Transaction,
        _ core: KeyspaceCore
    ) throws(StateError) {
        let (write, connection) = (made.write, made.write.connection)
        let start = core.changeCount
        guard write.isAwaited else {
            let text = String(decoding: write.attempt.cause, as: UTF8.self)
            let cause = core.retainCause(Cause(text) ?? .unknown)
            causes.append(cause)
            core.goOnDecided(by: cause, owner: nil)
            return try mirror(made, &transaction)
        }
        var context = CommandContext(connection, in: core, at: write.moment.time)
        context.round = .decided
        context.execution = CommandContext.Execution(visitsLeft: .max)
        core.goOnDecided(by: context.cause, owner: nil, seenBy: context.restriction)
        let place = connection.outbound.bytes.count
        var failure: StateError?
        core.asOf(write.moment) {
            do throws(StateError) {
                try write.run(&context)
            } catch {
                failure = error
            }
        }
        context.endExecution()
        replies.append((write, place))
        if failure == nil, core.conforms(from: start, to: made.changes) { return }
        core.undoChanges(from: start)
        connection.outbound.bytes.truncate(to: place)
        connection.outbound.bytes.writeError(ClusterDecision.cannotReport(failure))
        try mirror(made, &transaction)
    }

    private func mirror(_ made: Made, _ transaction: inout Transaction) throws(StateError) {
        try make(changes.filter { made.changes[Array($0.key)] != nil }, &transaction)
    }

    private static func cannotReport(_ failure: StateError?) -> StateError {
        StateError(
            .outcomeUnknown,
            "the cluster has the change, but its reply cannot be given: read the key"
                + (failure.map { " (\($0.message))" } ?? "")
        )
    }

    /// Nothing of it was made: it will come again.
    func undo(_ core: KeyspaceCore) {
        for reply in replies { reply.write.connection.outbound.bytes.truncate(to: reply.start) }
        for cause in causes { core.release(cause) }
    }

    /// The transaction is finished: the replies of its commands come after its events, and wait for
    /// storage if a rule says so.
    ///
    /// - Parameters:
    ///   - revision: Its revision.
    ///   - receipt: That of the link's own reply.
    ///   - core: The keyspace.
    ///   - writes: Where the commands are from.
    func answer(
        behind revision: Int64,
        _ receipt: borrowing Receipt,
        _ core: KeyspaceCore,
        _ writes: ClusterWrites
    ) {
        for cause in causes { core.release(cause) }
        let isFinal = receipt.isFinal || receipt.revision < revision
        for reply in replies {
            writes.endWaiting(reply.write.connection)
            var context = CommandContext(reply.write.connection, in: core, at: time)
            context.round = .decided
            context.receipt.noteCommit(revision, isFinal: isFinal)
            writes.gate.send(from: reply.start, &context)
        }
        guard endsBatch else { return }
        writes.end(made: Set(made.map { ObjectIdentifier($0.write) }), core)
    }
}
