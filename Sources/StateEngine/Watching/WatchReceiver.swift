/// Who takes what a watcher is told.
package protocol WatchReceiver: AnyObject {
    /// Whether a notice may be delivered now; where not, the watcher is blocked and `receive` not called.
    var hasRoom: Bool { get }

    /// Takes a notice; the records in it are borrowed.
    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore)

    /// Has the commits after `position` up to `revision` read from the history and told; ``Watcher/finishReading(through:in:)``
    /// is called when they have been, or a part of them.
    ///
    /// Only asked for where the keyspace keeps a history.
    func read(after position: Int64, through revision: Int64)

    /// The same for a watcher of latest values: ``Watcher/finishReading(marks:through:in:)`` is called with the keys that changed.
    func readChangedKeys(after position: Int64, through revision: Int64)

    /// There is something to do for a watcher that was at rest.
    func noteWork()

    /// Whether who is told has made this version itself.
    func hasWritten(_ record: Record) -> Bool

    /// Keeps a commit that is to be told right behind those that are being read.
    ///
    /// - Returns: Whether there was room for it; where not, it is forgotten with those kept before it.
    func keep(revision: Int64, changes: [Record], in core: KeyspaceCore) -> Bool
}

extension WatchReceiver {
    /// For who begins synced and always has room: it never asks for what was.
    package func read(after position: Int64, through revision: Int64) {
        preconditionFailure("a watcher that does not read the history has fallen behind")
    }

    package func readChangedKeys(after position: Int64, through revision: Int64) {
        preconditionFailure("a watcher that does not read the history has fallen behind")
    }

    package func noteWork() {}

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
        /// With a gap and the state: what was asked for is of no store that is known.
        case gap
    }

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
        /// Nil where it was absent.
        package var value: [UInt8]?
        /// Its last change until then.
        package var revision: Int64
        /// ``Cause/description`` of that; empty where nobody asked for it.
        package var cause: [UInt8]
    }

    /// How a watcher is told of commits.
    package enum Manner {
        /// Of each one.
        case everyCommit
        /// Of the latest value of each key, in rounds.
        case latest(includesCause: Bool, OwedBytes)
    }
}
