import StateEngine

/// One of those that a container tells of its changes.
///
/// It is given each change after the one that it began with, once and ascending, by one thread at a time; it keeps as many as it has
/// room for, and calls nobody under a lock.
package protocol Receiver: AnyObject, Sendable {
    /// Takes the current value, as a change whose `old` is its `new`; before any other, under the lock of the core.
    func begin(_ current: ChangeRecord)
    /// Takes a change.
    func put(_ change: ChangeRecord)
    /// Whether there is nobody any more to tell.
    var isGone: Bool { get }
}

extension Receiver {
    package func begin(_ current: ChangeRecord) { put(current) }
    package var isGone: Bool { false }
}

/// With what a receiver begins.
package enum Beginning: Sendable {
    /// The next change.
    case now
    /// The current value.
    case current
    /// The current value where it is not that of a revision, then the next change.
    case after(Revision)

    /// What the receiver is given at once.
    func change(_ value: some Sendable, _ revision: Revision, depth: Int64) -> ChangeRecord? {
        var skipped = 0
        switch self {
        case .now: return nil
        case .current: break
        case .after(let seen):
            if seen == revision { return nil }
            if revision.isNewer(than: seen) { skipped = Int(revision.number - seen.number - 1) }
        }
        let facts = ChangeFacts(
            revision: revision,
            skipped: skipped,
            cause: .unknown,
            depth: depth
        )
        return ChangeValues(value, value, facts)
    }
}

/// That a receiver is told; it no longer is when this is released.
package final class Membership: Sendable {
    private let leave: @Sendable () -> Void

    init(_ leave: @escaping @Sendable () -> Void) { self.leave = leave }

    deinit { leave() }
}
