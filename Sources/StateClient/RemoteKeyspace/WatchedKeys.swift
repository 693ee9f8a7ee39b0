import StateModel
import StateSystem
import Synchronization

/// The keys that a watch follows, and by which of the daemon's watches.
///
/// All patterns stand in one watch of the daemon, so that no commit is split: `main`. It is made anew when patterns come or go:
///
/// ```
/// STATE.WATCH all of them BY                next: its commits are passed over until it takes the place of main
/// STATE.UNWATCH main                        everything up to this reply was told by main, everything after it is by next
/// STATE.WATCH the new ones SNAPSHOT BY      snapshot: its pieces are the state at its `synced`, which is told at that place
/// STATE.UNWATCH snapshot                    in the order of commits; main tells what follows it
/// ```
///
/// So there is neither a hole nor a repetition, whatever is committed meanwhile. A watch that the daemon feeds from the history may
/// be overtaken by such a state: what that has told already is passed over (`ahead`). Until the state of a pattern was told, its
/// commits are not (`settled`). The first watch of all is a snapshot itself; that of a later connection goes on after what was
/// told last (FROM), and what the daemon cannot tell of that any more comes as a gap and a state.
///
/// What callers ask for is under the lock; the daemon's watches belong to the connection's thread: the proof of
/// `@unchecked Sendable`.
final class WatchedKeys: @unchecked Sendable {
    /// The patterns that the daemon takes in one watch.
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
    /// Up to here everything was told of what is settled, and there the watch of another connection goes on; nil: with the state.
    var told: Revision?
    /// Commits were missed: no more of them are told before the state is.
    var isStale = false
    /// The state that `snapshot` tells makes up for that.
    var heals = false
    /// Answers that wait until more is told.
    var held = FirstInFirstOut<HeldAnswer>()

    /// An answer, and the revision of the commit that it is about.
    struct HeldAnswer {
        var revision: Int64
        /// By when the caller has to be answered.
        var deadline: Deadline
        var body: () -> Void
        /// Called instead where that has passed.
        var expire: () -> Void
    }

    /// What callers ask for.
    struct Followed {
        var counts: [Pattern: Int] = [:]
        /// The state of these is to be told.
        var asked: Set<Pattern> = []
        /// What was asked for while nothing was heard of the daemon.
        var owed: Set<Pattern> = []
        /// The state of these was told, and each commit since.
        var settled: Set<Pattern> = []
        /// Of these, what the state of was told at a later revision than main has come to: no older commit is told of them.
        var ahead: [Pattern: Int64] = [:]
        /// What the keys of commits are compared with; nil: that is to be found out.
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
                    (patterns, StateError(.limit, "more than \(limit) patterns in one watch"))
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

    /// Whether it had not been cancelled before.
    func cancel() -> Bool { !isCancelled.exchange(true, ordering: .relaxed) }

    // MARK: Rounds

    /// What is to be sent, in this order.
    struct Round {
        /// A watch to begin.
        var next: WireWatch?
        /// The watch whose place it takes.
        var old: WireWatch?
        /// A watch that only tells a state.
        var snapshot: WireWatch?
    }

    /// Whether nothing will come of it any more.
    var isOver: Bool {
        isCancelled.load(ordering: .relaxed) && main == nil && next == nil && snapshot == nil
    }

    /// What is to be done; nil where that is nothing, or a round is under way.
    func beginRound() -> Round? {
        guard next == nil, snapshot == nil, !(main?.isBusy ?? false) else { return nil }
        let (wanted, asked) = followed.withLock { followed in
            defer { followed.asked = [] }
            return (followed.counts.keys.map { $0 }, followed.asked)
        }
        guard let main else { return beginFirst(wanted) }
        guard !wanted.isEmpty, !isCancelled.load(ordering: .relaxed) else {
            self.main = nil
            releaseHeld()
            return Round(old: main)
        }
        var round = Round()
        if Set(main.patterns) != Set(wanted) {
            next = WireWatch(self, wanted, .now)
            (round.next, round.old) = (next, main)
        }
        if !asked.isEmpty { snapshot = WireWatch(self, Array(asked), .snapshot) }
        heals = isStale
        round.snapshot = snapshot
        return next == nil && snapshot == nil ? nil : round
    }

    private func beginFirst(_ wanted: [Pattern]) -> Round? {
        guard !wanted.isEmpty, !isCancelled.load(ordering: .relaxed) else { return nil }
        if let told {
            isStale = false
            followed.withLock { followed in
                // The state of what the daemon's watches were to tell, when they were lost, comes once it is current.
                followed.asked.formUnion(followed.owed)
                followed.asked.formUnion(Set(wanted).subtracting(followed.settled))
            }
            main = WireWatch(self, wanted, .after(told))
        } else {
            main = WireWatch(self, wanted, .snapshot)
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
        // What it missed, or nobody follows now, is told as a state.
        if main == nil || wire.isBehind { isStale = true }
        followed.withLock { followed in
            followed.filter = nil
            if isStale { followed.asked = Set(followed.counts.keys) }
        }
        // Of what only the old one followed, the new one does not tell.
        releaseHeld()
    }

    /// The daemon does not begin one of its watches.
    func refuse(_ wire: WireWatch, _ error: StateError) {
        var patterns = wire.patterns
        if wire === next {
            next = nil
            // What was followed before is not at fault.
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
        if !refused.isEmpty { tell(.refused(patterns: refused, error)) }
    }

    /// The connection is lost, and the daemon's watches with it.
    func forgetWires() {
        if let main, main.isBehind || isStale { told = nil }
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
