import StateEngine

/// A receiver of a container's changes.
///
/// It gets each change after its initial one, once, in ascending order, from one thread at a time.
/// It keeps as many as it has room for, and calls no other code under a lock.
package protocol Receiver: AnyObject, Sendable {
    /// Takes the current value, as a change whose `old` equals its `new`. Called before any `put`,
    /// under the lock of the core.
    func begin(_ current: ChangeRecord)
    /// Takes a change.
    func put(_ change: ChangeRecord)
    /// The identity of the listener that it delivers to, even if that is gone; nil if no listener
    /// was attached.
    var identity: ObjectIdentifier? { get }
    /// Whether the receiver's target no longer exists.
    var isGone: Bool { get }
    /// Whether the thread that brings a change calls code of the program with it.
    var isInline: Bool { get }
}

extension Receiver {
    package func begin(_ current: ChangeRecord) { put(current) }
    package var identity: ObjectIdentifier? { nil }
    package var isGone: Bool { false }
    package var isInline: Bool { false }
}

/// What a receiver gets first.
package enum Beginning: Sendable {
    /// The next change.
    case now
    /// The current value.
    case current
    /// The current value if it is not that of the revision, then the next change.
    case after(Revision)

    /// The receiver's initial change.
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

/// The membership of a receiver; releasing it removes the receiver.
package final class Membership: Sendable {
    private let leave: @Sendable () -> Void

    init(_ leave: @escaping @Sendable () -> Void) { self.leave = leave }

    /// The same membership, which also retains `owner`: what the receiver gets ends with that.
    convenience init(_ membership: Membership, retaining owner: some AnyObject & Sendable) {
        self.init { withExtendedLifetime((membership, owner)) {} }
    }

    deinit { leave() }
}
