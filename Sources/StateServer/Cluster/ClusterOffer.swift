import StateEngine
import StateWire

/// What a command has done to keys of a cluster, and was undone: the cluster decides.
struct ClusterOffer {
    let attempt: ClusterAttempt
    /// Carries the command out again.
    var again: ((inout CommandContext) throws(StateError) -> Void)?
    /// The commands of EXEC.
    private(set) var queued: QueuedTransaction?
    /// The keys of WATCH: if they have changed, EXEC does nothing.
    private(set) var watched: [Session.WatchedKey] = []
    /// Whether EXEC does nothing if what it had read has changed.
    var hasWatched: Bool { !watched.isEmpty }
    /// Whether it takes long to carry it out: all of a batch are carried out in a row.
    var isLong: Bool { again != nil || queued.map { $0.steps > ClusterOffer.shortSteps } ?? false }

    /// As many steps as an EXEC may have beside others.
    private static let shortSteps = 128

    /// How often a command is carried out.
    enum Round {
        /// As it came.
        case first
        /// What it had read has changed meanwhile.
        case again
        /// It has seen the newest state of the cluster: what it finds is true.
        case confirmed
        /// The cluster has made its changes.
        case decided
    }

    init(_ attempt: ClusterAttempt) { self.attempt = attempt }

    mutating func note(_ transaction: QueuedTransaction, _ watched: [Session.WatchedKey]) {
        queued = transaction
        // What waited for an absent key has ended: it is absent, or it is not.
        self.watched = watched.map {
            Session.WatchedKey(key: $0.key, revision: $0.revision, absence: nil)
        }
    }
}

extension CommandContext {
    mutating func takeOffer() -> ClusterOffer? {
        defer { offer = nil }
        return offer
    }

    /// Whether the cluster must decide what the open transaction has done.
    ///
    /// - Throws: Why it cannot.
    mutating func isOffered() throws(StateError) -> Bool {
        let attempt = try core.takeAttempt()
        guard round != .confirmed || !attempt.changes.isEmpty else { return false }
        offer = ClusterOffer(attempt.changes.isEmpty ? attempt.confirmation : attempt)
        return true
    }

    /// The error of a command that has read keys of a cluster: what it saw may be old, and must be
    /// confirmed before it is answered.
    mutating func offeredFailure(_ error: StateError) -> StateError {
        guard round != .confirmed, error.mayBeOld else { return error }
        do throws(StateError) {
            offer = ClusterOffer(try core.takeAttempt().confirmation)
            return error
        } catch let refusal {
            // A condition that failed here may hold there.
            return error.code == .conflict ? refusal : error
        }
    }

    /// Whether the command waits until everything that the cluster had is here.
    ///
    /// - Throws: ``StateError/Code/away``.
    mutating func mustConfirm() throws(StateError) -> Bool {
        guard round == .first || round == .again, !isExecuting, core.mirrored != nil else {
            return false
        }
        if let refusal = core.admission.clusterLink?.refusal { throw refusal }
        offer = ClusterOffer(ClusterAttempt(cause: Array("\(cause.cause)".utf8)))
        return true
    }

    /// STATE.REVERT reads the history meanwhile, and cannot be carried out again at another place.
    func requireNoCluster(_ patterns: PatternSet) throws(StateError) {
        guard let mirrored = core.mirrored, patterns.patterns.contains(where: mirrored.meets) else {
            return
        }
        throw StateError(
            .rejected,
            "keys below \(mirrored.text) belong to the cluster, where nothing can be reverted at once: "
                + "read what was there (statectl get --at) and set it"
        )
    }

    /// EXEC depends on the keys of WATCH.
    mutating func noteRead(_ watched: [Session.WatchedKey]) {
        guard round != .decided else { return }
        for watch in watched { watch.key.withUnsafeBytes { _ = read($0) } }
    }
}

extension StateError {
    /// Whether another state of the keys might have another answer.
    fileprivate var mayBeOld: Bool {
        switch code {
        case .away, .noPermission, .rejected, .tooBig, .noSpace, .readOnly, .limit: false
        default: true
        }
    }
}

extension Dispatcher {
    /// The command waits for the cluster: its reply comes later.
    @inline(never)
    func offer(_ arguments: Arguments, from start: Int, _ context: inout CommandContext) {
        guard let offer = context.takeOffer(), let verb = Verb.named(arguments[0]) else { return }
        context.output.truncate(to: start)
        let (connection, core) = (context.connection, context.core)
        if let again = offer.again {
            gate.cluster?.take(offer, connection, core, again)
            return
        }
        let store = ArgumentStore()
        let kept = store.copy(arguments)
        let byteCount = store.footprint + (offer.queued?.footprint ?? 0)
        gate.cluster?.take(offer, connection, core, byteCount: byteCount) {
            [self] (context) throws(StateError) in
            // The arguments are in it.
            defer { withExtendedLifetime(store) {} }
            if let queued = offer.queued {
                context.connection.session.transaction = queued
                context.connection.session.watchedKeys =
                    context.round == .decided ? [] : offer.watched
            }
            try run(Command(verb, kept), verb.name, &context)
        }
    }
}
