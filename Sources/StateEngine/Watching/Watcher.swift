/// A watch: told of each commit that touches its patterns, or brought to the present from the history or by a snapshot.
///
/// ```
///            FROM r                         SNAPSHOT, FROM r that the history does not reach: gap
///              v                                        v
/// synced <-- catchingUp  <---- room, history ---- blocked ---- room, no history: gap ----> snapshot --> synced
///   |             '-- compacted meanwhile, or unreadable ----^ ^                              |
///   '------------------------- no room for a commit -----------+------------------------------'
/// ```
///
/// Every call comes under the keyspace's lock, in the order of revisions.
package final class Watcher {
    /// Where a watcher stands: always in exactly one of these.
    package enum Phase: Equatable {
        /// Told of each commit.
        case synced
        /// Fed from the history with the commits after its position.
        case catchingUp
        /// Fed with pieces, in key order; the keys up to `passed` have been told.
        case snapshot(passed: [UInt8]?)
        /// Had no room: waits until it has.
        case blocked
    }

    package let patterns: PatternSet
    /// Who is told, of what the rules let it see; nil where that is everything.
    let subject: Subject?
    /// Set once, before the watcher is added to a hub.
    package weak var receiver: (any WatchReceiver)?
    package internal(set) var phase: Phase
    /// Every commit up to here was told or does not match; nil where only a new beginning helps.
    ///
    /// While it is synced, this is behind the present without anything being missed.
    var position: Int64?
    /// The read of the history that is under way.
    var reading: Reading?
    /// What is owed to a watcher of latest values; nil for one that is told of each commit.
    var latest: LatestKeys?
    /// The revision of the last thing that was told.
    package internal(set) var deliveredRevision: Int64
    /// Changes of the commit that is being told.
    fileprivate(set) var matched: [Record] = []
    /// Whether its own client has changed something since the last bookmark that the rules hide from it.
    ///
    /// What others change does not count: nothing that is told may depend on it.
    package private(set) var hasHidden = false
    /// What a snapshot has found and not told yet; only where keys may be hidden from it.
    var found: FoundKeys?

    struct Reading {
        /// What was durable when it began: later commits come by themselves.
        let through: Int64
        /// Whether all that came since is kept, to be told right behind what is read.
        var isKeeping: Bool
        /// The last of it.
        var keptRevision: Int64
    }

    /// Makes a watcher, to be added to the keyspace's hub at once.
    ///
    /// - Parameters:
    ///   - patterns: What it is told of.
    ///   - start: Where it begins.
    ///   - manner: How it is told.
    ///   - subject: Who is told, of what the rules let it see; nil where that is everything.
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

    func match(_ record: Record) { matched.append(record) }

    /// Notes that a change matches that it may not see.
    func noteHidden(_ record: Record) {
        if !hasHidden, receiver?.hasWritten(record) ?? false { hasHidden = true }
    }

    /// Tells what matched of the commit at `revision`.
    func deliverMatched(revision: Int64, in core: KeyspaceCore) {
        defer { matched.removeAll(keepingCapacity: matched.capacity <= 1_024) }
        guard let receiver else { return }
        if latest != nil { return mark(receiver, in: core) }
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
            // What lies ahead of the snapshot comes with it.
            guard let passed else { return }
            let changes = passed.withUnsafeBytes { passed in
                matched.filter { !passed.precedes($0.key) }
            }
            guard !changes.isEmpty else { return }
            // Pieces that are not followed by the change are not resumed.
            guard receiver.hasRoom else { return block(at: nil) }
            receiver.receive(.piece(changes), in: core)
        case .blocked: break
        }
    }

    func block(at revision: Int64?) {
        phase = .blocked
        found = nil
        position = revision
        latest?.removeAll()
    }

    /// Marks what matched, but for what a snapshot brings by itself.
    private func mark(_ receiver: any WatchReceiver, in core: KeyspaceCore) {
        switch phase {
        case .synced, .catchingUp:
            for record in matched { latest?.mark(record, in: core) }
        case .snapshot(let passed):
            for record in matched { found?.noteChange(record) }
            passed?.withUnsafeBytes { passed in
                for record in matched where !passed.precedes(record.key) {
                    latest?.mark(record, in: core)
                }
            }
        case .blocked: return
        }
        checkOwed()
        receiver.noteWork()
    }

    /// Whether there are latest values to tell.
    var owesLatest: Bool { latest.map { !$0.isIdle } ?? false }

    func checkOwed() {
        if let latest, latest.isBeyondLimit { block(at: nil) }
    }

    /// Nobody is told any more: nothing is owed.
    package func forget() { latest?.removeAll() }

    /// The rules that say what it may see have changed: what was told is void, and the state follows.
    ///
    /// - Returns: Whether it was told of anything that they say; a read of the history that is under way is void, too.
    package func beginAnew() -> Bool {
        guard subject != nil else { return false }
        block(at: nil)
        return true
    }

    // MARK: How far it is

    /// Every commit up to here was told or does not match; nil during a snapshot, and where one has to follow.
    package func deliveredThrough(in core: KeyspaceCore) -> Int64? {
        switch phase {
        case .synced: owesLatest ? deliveredRevision : core.revisions.durable
        case .catchingUp, .blocked: position
        case .snapshot: nil
        }
    }

    /// Whether there is something durable that it was not told of.
    package var isBehind: Bool { phase != .synced || owesLatest }

    /// What waits of latest values; nil for a watcher that is told of each commit.
    package var waiting: LatestKeys.Waiting? { latest?.waiting }

    /// Takes over that a bookmark at this revision was told.
    package func noteProgress(_ revision: Int64) {
        deliveredRevision = revision
        hasHidden = false
    }
}
