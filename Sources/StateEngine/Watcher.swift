/// Who takes what a watcher is told.
package protocol WatchReceiver: AnyObject {
    /// Whether a notice may be delivered now; where not, the watcher is blocked and `receive` not called.
    var hasRoom: Bool { get }

    /// Takes a notice; the records in it are borrowed.
    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore)
}

/// A watch: told of each commit that touches its patterns, or brought to the present by a snapshot.
///
/// Every call comes under the keyspace's lock, in the order of revisions.
package final class Watcher {
    /// What a watcher is told.
    package enum Notice {
        /// The changes of one commit that match; each record still has what it supersedes as `older`.
        case commit(revision: Int64, changes: [Record])
        /// Pieces of the state on the way to `synced`; a deleted record says that a key of an earlier piece is gone.
        case piece([Record])
        /// All pieces so far make up exactly the state at this revision.
        case synced(Int64)
        /// What the watcher holds is void: pieces follow.
        case gap(Int64)
    }

    /// Where a watcher stands: always in exactly one of these.
    package enum Phase: Equatable {
        /// Told of each commit.
        case synced
        /// Fed with pieces, in key order; the keys up to `passed` have been told.
        case snapshot(passed: [UInt8]?)
        /// Had no room for a commit: waits until it has, then begins again with a gap.
        case blocked
    }

    package let patterns: PatternSet
    /// Set once, before the watcher is added to a hub.
    package weak var receiver: (any WatchReceiver)?
    package internal(set) var phase: Phase
    /// Commits up to here are nothing new.
    var toldRevision: Int64
    /// Changes of the commit that is being told.
    fileprivate(set) var matched: [Record] = []

    package init(_ patterns: PatternSet, snapshot: Bool, from revision: Int64) {
        self.patterns = patterns
        phase = snapshot ? .snapshot(passed: nil) : .synced
        toldRevision = revision
    }

    func match(_ record: Record) { matched.append(record) }

    /// Tells what matched of the commit at `revision`.
    func deliverMatched(revision: Int64, in core: KeyspaceCore) {
        defer { matched.removeAll(keepingCapacity: matched.capacity <= 1_024) }
        guard revision > toldRevision else { return }
        switch phase {
        case .synced:
            toldRevision = revision
            deliver(.commit(revision: revision, changes: matched), in: core)
        case .snapshot(let passed):
            // What lies ahead of the snapshot comes with it.
            guard let passed else { return }
            let changes = passed.withUnsafeBytes { passed in
                matched.filter { !passed.precedes($0.key) }
            }
            if !changes.isEmpty { deliver(.piece(changes), in: core) }
        case .blocked:
            break
        }
    }

    private func deliver(_ notice: Notice, in core: KeyspaceCore) {
        guard let receiver else { return }
        if receiver.hasRoom { receiver.receive(notice, in: core) } else { phase = .blocked }
    }

    /// Brings a watcher that is not synced one step nearer: a gap, a piece of about `byteLimit` bytes, or `synced`.
    ///
    /// - Returns: Whether there is more to do.
    package func advance(in core: KeyspaceCore, byteLimit: Int) -> Bool {
        switch phase {
        case .synced:
            return false
        case .blocked:
            phase = .snapshot(passed: nil)
            receiver?.receive(.gap(core.durableRevision), in: core)
            return true
        case .snapshot(let passed):
            let piece = nextPiece(after: passed, in: core, byteLimit: byteLimit)
            if let last = piece.last {
                receiver?.receive(.piece(piece), in: core)
                phase = .snapshot(passed: Array(last.key))
                return true
            }
            toldRevision = core.durableRevision
            phase = .synced
            receiver?.receive(.synced(core.durableRevision), in: core)
            return false
        }
    }

    private func nextPiece(
        after passed: [UInt8]?,
        in core: KeyspaceCore,
        byteLimit: Int
    ) -> [Record] {
        var piece: [Record] = []
        var byteCount = 0
        func collect(_ bound: Bytes?) {
            core.forEachDurable(patterns, after: bound) { record in
                piece.append(record)
                byteCount += record.byteCount + 32
                return byteCount < byteLimit
            }
        }
        if let passed { passed.withUnsafeBytes { collect($0) } } else { collect(nil) }
        return piece
    }
}
