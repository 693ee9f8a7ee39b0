/// Receives the notices of a watcher.
package protocol WatchReceiver: AnyObject {
    /// Whether a notice may be delivered now; if not, the watcher is blocked and `receive` is not
    /// called.
    var hasRoom: Bool { get }

    /// Takes a notice; the records in it are borrowed.
    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore)

    /// Reads the commits after `position` up to `revision` from the history and delivers them.
    /// Calls ``Watcher/finishReading(through:in:)`` when all of them, or some, are delivered.
    ///
    /// Only called if the keyspace keeps a history.
    func read(after position: Int64, through revision: Int64)

    /// The same for a watcher of latest values: ``Watcher/finishReading(pending:through:in:)`` is
    /// called with the keys that changed.
    func readChangedKeys(after position: Int64, through revision: Int64)

    /// There is something to do for a watcher that was idle.
    func noteWork()

    /// The watcher does not receive the commit after `revision`: it is blocked, and must be
    /// advanced.
    func fellBehind(after revision: Int64)

    /// Whether the receiver has made this version itself.
    func hasWritten(_ record: Record) -> Bool

    /// Keeps a commit that must be delivered right after those that are being read.
    ///
    /// - Returns: Whether there was room for it; if not, it is discarded with those kept before it.
    func keep(revision: Int64, changes: [Record], in core: KeyspaceCore) -> Bool
}

extension WatchReceiver {
    /// For receivers that begin synced and always have room: they never need the history.
    package func read(after position: Int64, through revision: Int64) {
        preconditionFailure("a watcher that does not read the history has fallen behind")
    }

    package func readChangedKeys(after position: Int64, through revision: Int64) {
        preconditionFailure("a watcher that does not read the history has fallen behind")
    }

    package func noteWork() {}

    package func fellBehind(after revision: Int64) { noteWork() }

    package func hasWritten(_ record: Record) -> Bool { false }

    package func keep(revision: Int64, changes: [Record], in core: KeyspaceCore) -> Bool { false }
}

extension Watcher {
    /// Where a watcher begins.
    package enum Start {
        /// With the commits to come.
        case now
        /// With the state, in pieces.
        case snapshot
        /// With the commits after a revision of a store; nil: of this one.
        case after(Int64, Epoch?)
        /// With a gap and the state: the requested position is of an unknown store.
        case gap
    }

    /// A notice to a watcher.
    package enum Notice {
        /// The matching changes of one commit; each record still has the version that it supersedes
        /// as `older`.
        case commit(revision: Int64, changes: [Record])
        /// A piece of the state on the way to `synced`; a deleted record means that a key of an
        /// earlier piece is gone.
        case piece([Record])
        /// All pieces so far make up exactly the state at this revision.
        case synced(Int64)
        /// What the receiver has is void: pieces follow.
        case gap(Int64)
        /// Values of a round of latest values; `synced` closes it.
        case latest(LatestValues)
    }

    /// Values of a round, in the order of their revisions.
    package struct LatestValues {
        /// Whether they are pieces of the state.
        package var isPiece: Bool
        package var values: [LatestValue]
    }

    /// The value of a key when the round began.
    package struct LatestValue {
        package var key: [UInt8]
        /// Nil if it was absent.
        package var value: [UInt8]?
        /// The revision of its last change until then.
        package var revision: Int64
        /// ``Cause/description`` of that change; empty if it was not requested.
        package var cause: [UInt8]
    }

    /// How a watcher receives commits.
    package enum Manner {
        /// Each commit.
        case everyCommit
        /// The latest value of each key, in rounds.
        case latest(includesCause: Bool, OwedBytes)
    }
}
