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
    /// Set once, before the watcher is added to a hub.
    package weak var receiver: (any WatchReceiver)?
    package private(set) var phase: Phase
    /// Every commit up to here was told or does not match; nil where only a new beginning helps.
    ///
    /// While it is synced, this is behind the present without anything being missed.
    private var position: Int64?
    /// The read of the history that is under way.
    private var reading: Reading?
    /// What is owed to a watcher of latest values; nil for one that is told of each commit.
    private var latest: LatestKeys?
    /// How many bytes of them; more is a gap.
    private let latestByteLimit: Int
    /// The revision of the last thing that was told.
    package private(set) var toldRevision: Int64
    /// Changes of the commit that is being told.
    fileprivate(set) var matched: [Record] = []

    private struct Reading {
        /// What was durable when it began: later commits come by themselves.
        let through: Int64
        /// Whether all that came since is kept, to be told right behind what is read.
        var isKeeping: Bool
        /// The last of it.
        var keptRevision: Int64
    }

    /// How near the present has to be for what comes during a read to be kept: most likely it is the last.
    private static let nearCommitCount: Int64 = 20_000

    /// Makes a watcher, to be added to the keyspace's hub at once.
    ///
    /// - Parameters:
    ///   - patterns: What it is told of.
    ///   - start: Where it begins.
    ///   - manner: How it is told.
    ///   - latestByteLimit: How much may be owed of latest values.
    ///   - core: The keyspace, whose lock is held.
    package init(
        _ patterns: PatternSet,
        _ start: Start,
        _ manner: Manner = .everyCommit,
        latestByteLimit: Int = .max,
        in core: KeyspaceCore
    ) {
        self.patterns = patterns
        self.latestByteLimit = latestByteLimit
        if case .latest(let tellsCause) = manner { latest = LatestKeys(tellsCause: tellsCause) }
        let present = core.durableRevision
        toldRevision = present
        position = present
        switch start {
        case .now: phase = .synced
        case .snapshot: phase = .snapshot(passed: nil)
        case .after(let revision, let epoch):
            let isKnown = epoch == nil || epoch == core.epoch
            position = isKnown && core.canResume(after: revision) ? revision : nil
            phase = position == present ? .synced : position == nil ? .blocked : .catchingUp
        case .gap: (phase, position) = (.blocked, nil)
        }
        if phase == .catchingUp { toldRevision = position ?? present }
    }

    // MARK: Commits

    func match(_ record: Record) { matched.append(record) }

    /// Tells what matched of the commit at `revision`.
    func deliverMatched(revision: Int64, in core: KeyspaceCore) {
        defer { matched.removeAll(keepingCapacity: matched.capacity <= 1_024) }
        guard let receiver else { return }
        if latest != nil { return mark(receiver, in: core) }
        switch phase {
        case .synced:
            guard revision > toldRevision else { return }
            guard receiver.hasRoom else { return block(at: revision - 1) }
            toldRevision = revision
            receiver.receive(.commit(revision: revision, changes: matched), in: core)
        case .catchingUp:
            guard reading?.isKeeping == true else { return }
            reading?.isKeeping = receiver.keep(revision: revision, changes: matched, in: core)
            reading?.keptRevision = revision
        case .snapshot(let passed):
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

    private func block(at revision: Int64?) {
        phase = .blocked
        position = revision
        latest?.removeAll()
    }

    /// Marks what matched, but for what a snapshot brings by itself.
    private func mark(_ receiver: any WatchReceiver, in core: KeyspaceCore) {
        switch phase {
        case .synced, .catchingUp:
            for record in matched { latest?.mark(record, in: core) }
        case .snapshot(let passed):
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
    private var owesLatest: Bool { latest.map { !$0.isIdle } ?? false }

    private func checkOwed() {
        if let latest, latest.byteCount > latestByteLimit { block(at: nil) }
    }

    // MARK: On the way to the present

    /// Whether ``advance(in:byteLimit:)`` has something to do, as soon as there is room.
    package var canAdvance: Bool {
        switch phase {
        case .synced: owesLatest
        case .catchingUp: reading == nil
        case .snapshot, .blocked: true
        }
    }

    /// Brings a watcher that is not synced one step nearer: a read of the history, a gap, a piece of about `byteLimit` bytes, or
    /// `synced`.
    ///
    /// - Returns: Whether there is more to do now.
    package func advance(in core: KeyspaceCore, byteLimit: Int) -> Bool {
        guard let receiver else { return false }
        switch phase {
        case .synced: return advanceRound(receiver, in: core, byteLimit: byteLimit)
        case .blocked, .catchingUp:
            guard reading == nil else { return false }
            guard let position, core.canResume(after: position) else {
                beginAgain(receiver, in: core)
                return true
            }
            readOn(receiver, after: position, in: core)
            return false
        case .snapshot(let passed):
            let (piece, seen) = nextPiece(after: passed, in: core, byteLimit: byteLimit)
            if !piece.isEmpty { receiver.receive(.piece(piece), in: core) }
            if let seen {
                phase = .snapshot(passed: seen)
                return true
            }
            phase = .synced
            if owesLatest {
                latest?.beginRound(at: core.durableRevision, isPiece: true)
                return true
            }
            tellSynced(core.durableRevision, receiver, in: core)
            return false
        }
    }

    /// Hands out values of a round of latest values, which begins where none is under way.
    private func advanceRound(
        _ receiver: any WatchReceiver,
        in core: KeyspaceCore,
        byteLimit: Int
    ) -> Bool {
        guard owesLatest else { return false }
        if latest?.hasRound == false {
            latest?.beginRound(at: core.durableRevision, isPiece: false)
        }
        if let values = latest?.takeValues(byteLimit: byteLimit, in: core), !values.values.isEmpty {
            receiver.receive(.latest(values), in: core)
        }
        if let revision = latest?.endRound() { tellSynced(revision, receiver, in: core) }
        return canAdvance
    }

    private func tellSynced(
        _ revision: Int64,
        _ receiver: any WatchReceiver,
        in core: KeyspaceCore
    ) {
        toldRevision = revision
        receiver.receive(.synced(revision), in: core)
    }

    /// What was told is void: the state follows.
    private func beginAgain(_ receiver: any WatchReceiver, in core: KeyspaceCore) {
        phase = .snapshot(passed: nil)
        toldRevision = core.durableRevision
        receiver.receive(.gap(core.durableRevision), in: core)
    }

    private func readOn(
        _ receiver: any WatchReceiver,
        after position: Int64,
        in core: KeyspaceCore
    ) {
        let present = core.durableRevision
        guard position < present else {
            phase = .synced
            return
        }
        phase = .catchingUp
        guard latest == nil else {
            // What comes meanwhile is marked.
            reading = Reading(through: present, isKeeping: false, keptRevision: present)
            return receiver.readMarks(after: position, through: present, in: core)
        }
        let isNear = present - position <= Watcher.nearCommitCount
        reading = Reading(through: present, isKeeping: isNear, keptRevision: present)
        receiver.read(after: position, through: present, in: core)
    }

    /// Takes over that the commits up to `revision` have been read and told.
    ///
    /// - Parameters:
    ///   - revision: Not above what was asked for.
    ///   - told: The last of them that there was anything to tell of; nil for none.
    ///   - core: The keyspace, whose lock is held.
    /// - Returns: Whether what was kept meanwhile is to be told now; where not, it is void.
    package func finishReading(
        through revision: Int64,
        told: Int64?,
        in core: KeyspaceCore
    ) -> Bool {
        guard let reading else { preconditionFailure("a read ends that was not begun") }
        self.reading = nil
        position = revision
        if let told { toldRevision = told }
        if revision == reading.through, reading.isKeeping {
            // Order matters: what was kept begins right behind what was read.
            phase = .synced
            if reading.keptRevision > reading.through { toldRevision = reading.keptRevision }
            return true
        }
        if revision >= core.durableRevision { phase = .synced }
        return false
    }

    /// Takes over which keys the commits up to the present have changed: their values make up the first round.
    package func finishReading(
        marks: [[UInt8]: LatestKeys.Mark],
        through revision: Int64,
        in core: KeyspaceCore
    ) {
        reading = nil
        // What came meanwhile was too much to be owed: it is void with what was read.
        guard phase == .catchingUp else { return }
        position = revision
        phase = .synced
        for (key, mark) in marks { latest?.mark(key, mark) }
        checkOwed()
        guard phase == .synced, !owesLatest, let receiver else { return }
        tellSynced(core.durableRevision, receiver, in: core)
    }

    /// Takes over that the commits after its position are not to be had: a gap and the state follow.
    package func failReading() {
        reading = nil
        block(at: nil)
    }

    /// A piece of about so many bytes, or of what is among the keys that can be compared meanwhile.
    ///
    /// - Returns: It, and the last key that was looked at; nil where nothing was left.
    private func nextPiece(
        after passed: [UInt8]?,
        in core: KeyspaceCore,
        byteLimit: Int
    ) -> (piece: [Record], seen: [UInt8]?) {
        var piece: [Record] = []
        var byteCount = 0
        func collect(_ bound: Bytes?) -> [UInt8]? {
            core.forEachDurable(patterns, after: bound, comparing: byteLimit) { record in
                piece.append(record)
                byteCount += record.byteCount + 32
                return byteCount < byteLimit
            }
        }
        let seen = if let passed { passed.withUnsafeBytes { collect($0) } } else { collect(nil) }
        return (piece, seen ?? piece.last.map { Array($0.key) })
    }

    // MARK: How far it is

    /// Every commit up to here was told or does not match; nil during a snapshot, and where one has to follow.
    package func toldThrough(in core: KeyspaceCore) -> Int64? {
        switch phase {
        case .synced: owesLatest ? toldRevision : core.durableRevision
        case .catchingUp, .blocked: position
        case .snapshot: nil
        }
    }

    /// Whether there is something durable that it was not told of.
    package var isBehind: Bool { phase != .synced || owesLatest }

    /// What waits of latest values; nil for a watcher that is told of each commit.
    package var waiting: LatestKeys.Waiting? { latest?.waiting }

    /// Takes over that a bookmark at this revision was told.
    package func noteProgress(_ revision: Int64) { toldRevision = revision }
}

extension KeyspaceCore {
    /// Whether all commits after `revision` are there: it is no later than the present, and the history reaches back to it.
    package func canResume(after revision: Int64) -> Bool {
        if revision == durableRevision { return true }
        return hasHistory && revision >= compactedRevision && revision < durableRevision
    }
}
