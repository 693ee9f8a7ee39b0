/// A watch: receives each commit that touches its patterns, or is brought to the present from the
/// history or by a snapshot.
///
/// ```
///            FROM r                   SNAPSHOT, FROM r that the history does not reach: gap
///              v                                v
/// synced <-- catchingUp <-- room, history -- blocked -- no history: gap --> snapshot --> synced
///   |           '-- compacted, or unreadable -^  ^                             |
///   '----------- no room for a commit -----------+-----------------------------'
/// ```
///
/// Every call is under the keyspace's lock, in the order of revisions.
package final class Watcher {
    /// The state of a watcher: always exactly one of these.
    package enum Phase: Equatable {
        /// Receives each commit.
        case synced
        /// Receives the commits after its position from the history.
        case catchingUp
        /// Receives pieces, in key order; the keys up to `passed` were delivered.
        case snapshot(passed: [UInt8]?)
        /// Had no room: waits for some.
        case blocked
    }

    package let patterns: PatternSet
    /// The subject, if rules may hide keys from it; nil if it may see everything.
    ///
    /// Only ``WatchHub/move(_:to:)`` changes it.
    var subject: Subject?
    /// Set once, before the watcher is added to a hub.
    package weak var receiver: (any WatchReceiver)?
    @exclusivity(unchecked) package internal(set) var phase: Phase
    /// Every commit up to this one was delivered or does not match; nil if the watcher has to start
    /// again with a gap.
    ///
    /// While it is synced, this may be behind the present although nothing was missed.
    var position: Int64?
    /// The current read of the history.
    var reading: Reading?
    /// The undelivered values of a watcher of latest values; nil for one that receives each commit.
    @exclusivity(unchecked) var latest: LatestKeys?
    /// The revision of the last notice.
    @exclusivity(unchecked) package internal(set) var deliveredRevision: Int64
    /// Changes of the commit that is being published.
    @exclusivity(unchecked) fileprivate(set) var matched: [Record] = []
    /// Whether its own client has made a change since the last bookmark that the rules hide from
    /// it.
    ///
    /// Changes by others do not count: nothing that is delivered may depend on them.
    package private(set) var hasHidden = false
    /// What a snapshot has found but not delivered yet; only if keys may be hidden from the
    /// subject.
    var found: FoundKeys?

    struct Reading {
        /// The durable revision when it began: later commits are published to the watcher anyway.
        let through: Int64
        /// Whether all later commits are kept, to be delivered right after the read.
        var isKeeping: Bool
        /// The revision of the last kept commit.
        var keptRevision: Int64
    }

    /// Makes a watcher, which must be added to the keyspace's hub at once.
    ///
    /// - Parameters:
    ///   - patterns: The keys that it watches.
    ///   - start: Where it begins.
    ///   - manner: How it receives commits.
    ///   - subject: The subject, if rules may hide keys from it; nil if it may see everything.
    ///   - core: The keyspace, whose lock is held.
    package init(
        _ patterns: PatternSet,
        _ start: Start,
        _ manner: Manner = .everyCommit,
        for subject: Subject? = nil,
        in core: KeyspaceCore
    ) {
        self.patterns = patterns
        self.subject = subject.flatMap { $0.isPrivileged ? nil : $0 }
        if case .latest(let includesCause, let owed) = manner {
            latest = LatestKeys(includesCause: includesCause, owed)
        }
        let present = core.revisions.durable
        deliveredRevision = present
        position = present
        switch start {
        case .now: phase = .synced
        case .snapshot: phase = .snapshot(passed: nil)
        case .after(let revision, let epoch):
            let isKnown = epoch == nil || epoch == core.epoch
            let canResume = isKnown && core.canResume(patterns, after: revision)
            position = canResume ? revision : nil
            phase = position == present ? .synced : position == nil ? .blocked : .catchingUp
        case .gap: (phase, position) = (.blocked, nil)
        }
        if phase == .catchingUp { deliveredRevision = position ?? present }
    }

    // MARK: Commits

    /// Records a change that matches one of its patterns, once however many do.
    ///
    /// - Parameters:
    ///   - record: The change.
    ///   - touched: Gets the watcher with the first change of a commit.
    func report(_ record: Record, to touched: inout [Watcher]) {
        guard matched.last != record else { return }
        if matched.isEmpty { touched.append(self) }
        matched.append(record)
    }

    /// Records that a matching change is hidden from it.
    func noteHidden(_ record: Record) {
        if !hasHidden, receiver?.hasWritten(record) ?? false { hasHidden = true }
    }

    /// Delivers the matched changes of the commit at `revision`.
    func deliverMatched(revision: Int64, in core: KeyspaceCore) {
        defer { matched.removeAll(keepingCapacity: matched.capacity <= 1_024) }
        guard let receiver else { return }
        if latest != nil { return addPending(receiver, in: core) }
        switch phase {
        case .synced:
            guard revision > deliveredRevision else { return }
            guard receiver.hasRoom else { return block(at: revision - 1) }
            deliveredRevision = revision
            receiver.receive(.commit(revision: revision, changes: matched), in: core)
        case .catchingUp:
            guard reading?.isKeeping == true else { return }
            reading?.isKeeping = receiver.keep(revision: revision, changes: matched, in: core)
            reading?.keptRevision = revision
        case .snapshot(let passed):
            for record in matched { found?.noteChange(record) }
            // What lies ahead of the snapshot is delivered with it.
            guard let passed else { return }
            let changes = passed.withUnsafeBytes { passed in
                matched.filter { !passed.precedes($0.key) }
            }
            guard !changes.isEmpty else { return }
            // A snapshot cannot continue if a change to its pieces was not delivered.
            guard receiver.hasRoom else { return block(at: nil) }
            receiver.receive(.piece(changes), in: core)
        case .blocked: break
        }
    }

    /// Leaves out the commit at `revision`, for which its user has no steps left: it is delivered
    /// later, from the history, or with a gap if there is none.
    func postpone(revision: Int64) {
        switch phase {
        case .synced where latest == nil:
            guard revision > deliveredRevision else { return }
            block(at: revision - 1)
        case .catchingUp where latest == nil:
            reading?.isKeeping = false
            return
        // What was delivered cannot be continued without it.
        case .synced, .catchingUp, .snapshot: block(at: nil)
        case .blocked: return
        }
        receiver?.fellBehind(after: revision - 1)
    }

    func block(at revision: Int64?) {
        phase = .blocked
        found = nil
        position = revision
        latest?.removeAll()
    }

    /// Adds the matched keys to the pending ones, except those that a snapshot has still to deliver.
    private func addPending(_ receiver: any WatchReceiver, in core: KeyspaceCore) {
        switch phase {
        case .synced, .catchingUp:
            for record in matched { latest?.add(record, in: core) }
        case .snapshot(let passed):
            for record in matched { found?.noteChange(record) }
            passed?.withUnsafeBytes { passed in
                for record in matched where !passed.precedes(record.key) {
                    latest?.add(record, in: core)
                }
            }
        case .blocked: return
        }
        checkOwed()
        receiver.noteWork()
    }

    /// Whether there are latest values to deliver.
    var owesLatest: Bool { latest.map { !$0.isIdle } ?? false }

    func checkOwed() {
        if let latest, latest.isBeyondLimit { block(at: nil) }
    }

    /// The receiver is gone: discards undelivered values.
    package func forget() { latest?.removeAll() }

    /// The rules that determine what it may see have changed: what was delivered is void, and the
    /// state follows.
    ///
    /// - Returns: Whether the rules apply to it; a current read of the history is then void, too.
    package func beginAnew() -> Bool {
        guard subject != nil else { return false }
        block(at: nil)
        return true
    }

    // MARK: How far it is

    /// Every commit up to this one was delivered or does not match; nil during a snapshot, also
    /// while only values that changed meanwhile are missing, and if one has to follow.
    package func deliveredThrough(in core: KeyspaceCore) -> Int64? {
        switch phase {
        case .synced where latest?.owesPieces == true: nil
        case .synced: owesLatest ? deliveredRevision : core.revisions.durable
        case .catchingUp, .blocked: position
        case .snapshot: nil
        }
    }

    /// Whether there are durable changes that it has not received.
    package var isBehind: Bool { phase != .synced || owesLatest }

    /// The undelivered latest values; nil for a watcher that receives each commit.
    package var waiting: LatestKeys.Waiting? { latest?.waiting }

    /// A bookmark at this revision was delivered.
    package func noteProgress(_ revision: Int64) {
        deliveredRevision = revision
        hasHidden = false
    }
}
