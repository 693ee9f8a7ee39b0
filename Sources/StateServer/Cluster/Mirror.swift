import CLinux
package import StateEngine
import StateWire

/// The cluster that some keys are a copy of.
package struct MirrorOptions: Sendable {
    /// Its keys.
    package var prefix: MirroredPrefix
    /// The uid of its link.
    package var user: UInt32
    /// The name of this machine in the cluster.
    package var node: String
    /// How long after the last proof its keys count as current, in milliseconds.
    package var staleMilliseconds: Int64
    /// What reads of its keys get while they may be behind.
    package var staleness: Staleness

    /// What reads get while the copy of a cluster may be behind.
    package enum Staleness: Sendable {
        /// The value.
        case serve
        /// The same, and STATE.GET says how old it is.
        case dated
        /// An error.
        case refuse
    }

    package init(
        _ prefix: MirroredPrefix,
        user: UInt32,
        node: String,
        staleMilliseconds: Int64,
        staleness: Staleness
    ) {
        (self.prefix, self.user, self.node) = (prefix, user, node)
        (self.staleMilliseconds, self.staleness) = (staleMilliseconds, staleness)
    }
}

/// The copy of a cluster: who brings its changes, and how current it is.
///
/// Used only by the loop thread.
final class Mirror {
    let options: MirrorOptions
    /// The connection of the link; nil if no link has begun.
    var link: Connection?
    /// The comparison under way.
    var comparison: MirrorComparison?
    /// The commands that wait for the cluster.
    var writes: ClusterWrites?
    /// Why the cluster takes no changes of this machine, although it is there.
    var refusalOfChanges: StateError?
    /// Keys that cannot be here: the link counts them.
    var refusedCount: Int64 = 0
    /// The cluster's revision up to which everything is here, as of the last commit.
    var revision: Int64 = 0
    /// At this time, in milliseconds of CLOCK_BOOTTIME, the cluster had nothing that is not
    /// here; nil if that was not seen since the start.
    private(set) var provedAt: Int64?
    /// Since when it is cut off, in milliseconds since 1970; nil if it is current.
    private(set) var awaySince: Int64?
    private(set) var reason = "no link has connected since the start"
    /// A proof that waits for storage: the revision here, and the time.
    private var pending: (revision: Int64, time: Int64)?
    private let timers: TimerQueue
    private let registry: Registry
    /// A position and its text: each commit of the cluster begins with that of the one before.
    private var known: (text: String, position: MirrorPosition)?

    init(_ options: MirrorOptions, _ timers: TimerQueue, _ registry: Registry) {
        (self.options, self.timers, self.registry) = (options, timers, registry)
        setAway(since: SystemClock.wallMilliseconds())
    }

    /// The position that is stored as a text; without a text, before the first comparison.
    func position(of text: String?) -> MirrorPosition {
        if let known, known.text == text { return known.position }
        return MirrorPosition(text, of: options.prefix) ?? MirrorPosition(of: options.prefix)
    }

    /// The text of a position, to be stored.
    func text(of position: MirrorPosition) -> String {
        let text = position.text
        known = (text, position)
        return text
    }

    private func setAway(since time: Int64?) {
        awaySince = time
        registry.observers.refusesStale = time != nil && options.staleness == .refuse
    }

    /// After the machine has slept, the timer may come late.
    var isCurrent: Bool {
        awaySince == nil && due.map { $0 > SystemClock.bootMilliseconds() } ?? false
    }

    /// How old the last proof is, in milliseconds; nil if there was none since the start.
    var age: Int64? { provedAt.map { max(0, SystemClock.bootMilliseconds() - $0) } }

    /// How current a key is, for STATE.GET; nil if that is not to be said.
    func currency(of key: Bytes) -> Currency? {
        guard options.staleness != .serve, options.prefix.holds(key) else { return nil }
        return Currency(isCurrent: isCurrent, age: age ?? -1)
    }

    /// How current a key of a cluster is.
    struct Currency {
        let isCurrent: Bool
        /// Milliseconds since the last proof; -1 if there was none.
        let age: Int64
    }

    /// A proof that nothing was missing `age` milliseconds ago counts once a commit is on stable
    /// storage.
    func take(proofAged age: Int64, dependingOn revision: Int64) {
        pending = (revision, SystemClock.bootMilliseconds() - min(age, Int64(Int32.max)))
    }

    /// Everything up to a revision is on stable storage.
    ///
    /// - Returns: Whether the copy was cut off until now.
    func settle(through durable: Int64) -> Bool {
        guard let proof = pending, proof.revision <= durable else { return false }
        pending = nil
        provedAt = max(provedAt ?? proof.time, proof.time)
        guard let due, due > SystemClock.bootMilliseconds() else { return false }
        scheduleExpiry(due)
        defer { setAway(since: nil) }
        return awaySince != nil
    }

    /// Commits from a revision on are undone, or may be: what a proof depended on is not here.
    ///
    /// Their numbers are used again.
    func forgetProof(from revision: Int64) {
        if let proof = pending, proof.revision >= revision { pending = nil }
    }

    /// Why there will be no proof for now.
    func note(_ reason: String) { self.reason = reason }

    /// The proof is too old, unless a newer one has come.
    ///
    /// - Returns: Whether it was current until now.
    func expire() -> Bool {
        if let due, due > SystemClock.bootMilliseconds() {
            scheduleExpiry(due)
            return false
        }
        guard awaySince == nil else { return false }
        setAway(since: SystemClock.wallMilliseconds())
        return true
    }

    /// The timers have another clock, which stands still while the machine sleeps.
    private func scheduleExpiry(_ due: Int64) {
        let left = max(1, due - SystemClock.bootMilliseconds())
        timers.set(.mirror, at: SystemClock.monotonicMilliseconds() + left)
    }

    /// Until when it is current, in milliseconds of CLOCK_BOOTTIME.
    private var due: Int64? { provedAt.map { $0 + options.staleMilliseconds } }
}

extension Mirror: ClusterLink {
    /// Changes of its keys are refused while it is cut off: nothing is sent then.
    var refusal: StateError? {
        guard !isCurrent else { return refusalOfChanges }
        let since = UniversalTime.text(awaySince ?? SystemClock.wallMilliseconds())
        return StateError(
            .away,
            "\(options.prefix.text) is cut off since \(since): \(reason)"
        )
    }

    /// Nothing was sent of a command in all its time.
    var tookTooLong: StateError {
        StateError(
            .away,
            "\(options.prefix.text): the cluster did not answer for "
                + "\(ClusterWrites.patience / 1_000) s, and nothing was changed: \(reason)"
        )
    }

    /// The answer of the cluster did not come.
    var outcomeUnknown: StateError {
        StateError(
            .outcomeUnknown,
            "\(options.prefix.text): the answer of the cluster was lost, and the change may be "
                + "made: read the key again once statectl status says current"
        )
    }
}

extension Mirror {
    /// The fields of STATE.STATUS; counts only for users who may read all keys.
    func report(showsCounts: Bool) -> [(String, String)] {
        let since = UniversalTime.text(awaySince ?? SystemClock.wallMilliseconds())
        return [
            ("cluster", isCurrent ? "current" : "away since \(since): \(reason)"),
            ("cluster_prefix", options.prefix.text),
            ("cluster_node", options.node),
            ("cluster_age_ms", "\(age ?? -1)"),
        ]
            + (showsCounts
                ? [
                    ("cluster_revision", "\(revision)"), ("cluster_refused", "\(refusedCount)"),
                    ("cluster_waiting", "\(writes?.waitingCount ?? 0)"),
                    ("cluster_unknown", "\(writes?.doubts.asked ?? 0)"),
                    ("cluster_unknown_made", "\(writes?.doubts.committed ?? 0)"),
                    ("cluster_unknown_lost", "\(writes?.doubts.notCommitted ?? 0)"),
                ]
                : [])
    }

    /// The metrics.
    func write(_ text: inout MetricsText) {
        text.gauge(
            "cluster_current",
            "Whether the copy of the cluster is known to be complete.",
            isCurrent ? 1 : 0
        )
        text.gauge(
            "cluster_age_seconds",
            "How long ago the copy was complete; -1 if that was not seen since the start.",
            age.map { Double($0) / 1_000 } ?? -1
        )
        text.gauge(
            "cluster_revision",
            "The revision of the cluster that is here.",
            Double(revision)
        )
        text.gauge(
            "cluster_refused_keys",
            "Keys of the cluster that cannot be here.",
            Double(refusedCount)
        )
        text.gauge(
            "cluster_waiting",
            "Commands that wait for the decision of the cluster.",
            Double(writes?.waitingCount ?? 0)
        )
        text.counter(
            "cluster_unknown_total",
            "Commands that were answered with an unknown outcome.",
            Double(writes?.doubts.asked ?? 0)
        )
    }
}
