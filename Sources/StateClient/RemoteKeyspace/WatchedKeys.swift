import StateModel
import StateSystem
import Synchronization

/// The keys that a watch follows, and the daemon's watches that report them.
///
/// All patterns are in one watch of the daemon, `main`, so that no commit is split. When patterns
/// are added or removed, it is replaced:
///
/// ```
/// STATE.WATCH all patterns BY               next: its commits are ignored until it replaces main
/// STATE.UNWATCH main                        before this reply main delivers, after it next does
/// STATE.WATCH new patterns SNAPSHOT BY      snapshot: its pieces are the state at its `synced`,
/// STATE.UNWATCH snapshot                    delivered in the order of commits; then main delivers
/// ```
///
/// So there is neither a gap nor a repetition, whatever is committed meanwhile. Such a state may
/// overtake a watch that replays history: commits that it already covers are skipped (`ahead`). The
/// commits of a pattern are delivered only after its state (`settled`). The very first watch is
/// itself a snapshot. On a later connection, the watch resumes after the last delivered revision
/// (FROM); what the daemon no longer has of that comes as a gap and a state.
///
/// Callers' requests are under the lock. The daemon's watches belong to the connection's thread:
/// the proof of `@unchecked Sendable`.
final class WatchedKeys: @unchecked Sendable {
    /// How many patterns the daemon accepts in one watch.
    static let patternLimit = 1_000

    // Immutable.
    let receive: @Sendable (KeyspaceEvent) -> Void
    let isCancelled = Atomic(false)

    // Under the lock.
    let followed = StateLock(Followed())

    // The connection's thread.
    var main: WireWatch?
    private var next: WireWatch?
    var snapshot: WireWatch?
    /// The revision up to which everything settled was delivered, and after which the watch of a
    /// new connection resumes; nil: it starts with the state.
    var deliveredRevision: Revision?
    /// Whether commits were missed: no more are delivered until the state is.
    var isStale = false
    /// Whether the state of `snapshot` makes up for them.
    var heals = false
    /// Answers that wait for deliveries.
    var held = FirstInFirstOut<HeldAnswer>()

    /// An answer, and the revision of its commit.
    struct HeldAnswer {
        var revision: Int64
        /// When the caller must be answered.
        var deadline: Deadline
        var body: () -> Void
        /// Called instead after the deadline.
        var expire: () -> Void
    }

    /// The callers' requests.
    struct Followed {
        var counts: [Pattern: Int] = [:]
        /// Patterns whose state must be delivered.
        var asked: Set<Pattern> = []
        /// Patterns that were requested while the daemon was unavailable.
        var owed: Set<Pattern> = []
        /// Patterns whose state was delivered, and each commit since.
        var settled: Set<Pattern> = []
        /// Those of them whose state was delivered at a later revision than `main` has reached;
        /// older commits of them are skipped.
        var ahead: [Pattern: Int64] = [:]
        /// The patterns that commits are filtered by; nil: to be computed.
        var filter: Filter?
        var refusals: [([Pattern], StateError)] = []
        var isReportedAway = false
    }

    enum Filter {
        case all
        case some(PatternSet)
    }

    init(_ receive: @escaping @Sendable (KeyspaceEvent) -> Void) { self.receive = receive }

    // MARK: Callers

    func include(_ patterns: [Pattern]) {
        followed.withLock { followed in
            let count = followed.counts.count + Set(patterns).count { followed.counts[$0] == nil }
            guard count <= Self.patternLimit else {
                let limit = Self.patternLimit
                followed.refusals.append(
                    (patterns, StateError(.limit, "a watch can have at most \(limit) patterns"))
                )
                return
            }
            for pattern in patterns { followed.counts[pattern, default: 0] += 1 }
            followed.asked.formUnion(patterns)
        }
    }

    func exclude(_ patterns: [Pattern]) {
        followed.withLock { followed in
            for pattern in patterns {
                guard let count = followed.counts[pattern] else { continue }
                if count > 1 {
                    followed.counts[pattern] = count - 1
                } else {
                    followed.drop(pattern)
                }
            }
        }
    }

    /// Cancels the watch; returns false if it already was.
    func cancel() -> Bool { !isCancelled.exchange(true, ordering: .relaxed) }

    // MARK: Rounds

    /// The requests of one round, in this order.
    struct Round {
        /// A watch to start.
        var next: WireWatch?
        /// The watch that it replaces.
        var old: WireWatch?
        /// A watch that only delivers a state.
        var snapshot: WireWatch?
    }

    /// Whether the watch is cancelled and has no daemon watches left.
    var isOver: Bool {
        isCancelled.load(ordering: .relaxed) && main == nil && next == nil && snapshot == nil
    }

    /// The next requests; nil if there is nothing to do, or a round is in progress.
    func beginRound() -> Round? {
        guard next == nil, snapshot == nil, !(main?.isBusy ?? false) else { return nil }
        let (patterns, asked) = followed.withLock { followed in
            defer { followed.asked = [] }
            return (followed.counts.keys.map { $0 }, followed.asked)
        }
        guard let main else { return beginFirst(patterns) }
        guard !patterns.isEmpty, !isCancelled.load(ordering: .relaxed) else {
            self.main = nil
            releaseHeld()
            return Round(old: main)
        }
        var round = Round()
        if Set(main.patterns) != Set(patterns) {
            next = WireWatch(self, patterns, .now)
            (round.next, round.old) = (next, main)
        }
        if !asked.isEmpty { snapshot = WireWatch(self, Array(asked), .snapshot) }
        heals = isStale
        round.snapshot = snapshot
        return next == nil && snapshot == nil ? nil : round
    }

    private func beginFirst(_ patterns: [Pattern]) -> Round? {
        guard !patterns.isEmpty, !isCancelled.load(ordering: .relaxed) else { return nil }
        if let deliveredRevision {
            isStale = false
            followed.withLock { followed in
                // A state that was due when the daemon's watches were lost is delivered once it is
                // current.
                followed.asked.formUnion(followed.owed)
                followed.asked.formUnion(Set(patterns).subtracting(followed.settled))
            }
            main = WireWatch(self, patterns, .after(deliveredRevision))
        } else {
            main = WireWatch(self, patterns, .snapshot)
        }
        followed.withLock { followed in
            followed.owed = []
            followed.filter = nil
        }
        return Round(next: main)
    }

    /// The daemon has ended one of its watches.
    func noteEnd(of wire: WireWatch) {
        guard wire === main else { return }
        main = next
        next = nil
        // Commits that it missed, or that no watch follows now, are covered by a state.
        if main == nil || wire.isBehind { isStale = true }
        followed.withLock { followed in
            followed.filter = nil
            if isStale { followed.asked = Set(followed.counts.keys) }
        }
        // The new watch does not deliver commits of patterns that only the old one followed.
        releaseHeld()
    }

    /// The daemon refused to start one of its watches.
    func refuse(_ wire: WireWatch, _ error: StateError) {
        var patterns = wire.patterns
        if wire === next {
            next = nil
            // The patterns that were followed before are not the cause.
            if let snapshot { patterns = snapshot.patterns }
        } else if wire === snapshot {
            snapshot = nil
        } else if wire === main {
            main = nil
        }
        let refused = followed.withLock { followed in
            let refused = patterns.filter { followed.counts[$0] != nil }
            for pattern in refused { followed.drop(pattern) }
            return refused
        }
        releaseHeld()
        if !refused.isEmpty { deliver(.refused(patterns: refused, error)) }
    }

    /// The connection, and with it the daemon's watches, is lost.
    func forgetWires() {
        if let main, main.isBehind || isStale { deliveredRevision = nil }
        (main, next, snapshot) = (nil, nil, nil)
        isStale = true
        releaseHeld()
    }
}

extension WatchedKeys.Followed {
    fileprivate mutating func drop(_ pattern: Pattern) {
        counts[pattern] = nil
        asked.remove(pattern)
        owed.remove(pattern)
        settled.remove(pattern)
        ahead[pattern] = nil
        filter = nil
    }
}
