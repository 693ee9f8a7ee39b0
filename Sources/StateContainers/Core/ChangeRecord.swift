import CLinux
public import StateEngine

/// What one change did, except for the values.
@usableFromInline
struct ChangeFacts: Sendable {
    @usableFromInline let revision: Revision
    @usableFromInline var skipped = 0
    /// Nil for this process, for no particular reason: copying a cause costs as much as a lock.
    private let otherCause: Cause?
    /// How many changes in a row led to this one, each made during the delivery of the one before.
    var depth: Int64
    /// Its number among the changes that its core published.
    var number: Int64 = 0

    @usableFromInline
    init(revision: Revision, skipped: Int, cause: Cause?, depth: Int64, number: Int64 = 0) {
        self.revision = revision
        self.skipped = skipped
        otherCause = cause
        self.depth = depth
        self.number = number
    }

    /// Those of a change that this process makes in memory, for no particular reason.
    @usableFromInline
    init(ownAt revision: Revision, number: Int64) {
        self.init(
            revision: revision,
            skipped: 0,
            cause: nil,
            depth: clinux_depth(),
            number: number
        )
    }

    @usableFromInline var cause: Cause { otherCause ?? .thisProcess }
}

/// A change without its values: all that queues, filters and slots need.
///
/// So none of these is generic. Unspecialised generic code, as any that a program calls in another
/// module, looks up its types at run time at each step: 500 ns instead of 30.
///
/// Everything is constant, in ``ChangeValues`` too: the proof of `@unchecked Sendable`.
@usableFromInline
package class ChangeRecord: @unchecked Sendable {
    @usableFromInline final let facts: ChangeFacts

    @usableFromInline
    init(_ facts: ChangeFacts) { self.facts = facts }

    /// This change merged with the `earlier` one of the same values, which was not delivered.
    func merging(_ earlier: ChangeRecord) -> ChangeRecord {
        preconditionFailure("a change without values cannot be merged")
    }

    /// The value that this change left, as the first change for a new receiver.
    var beginning: ChangeRecord { preconditionFailure("a change without values has no beginning") }

    /// Passes this change to `body`, in `scope`.
    ///
    /// Changes that `body` makes count as caused by this one.
    final func deliver(in scope: StateScope?, _ body: (ChangeRecord) -> Void) {
        let depth = clinux_depth()
        clinux_set_depth(facts.depth + 1)
        defer { clinux_set_depth(depth) }
        guard let scope else { return body(self) }
        StateScope.$current.withValue(scope) { body(self) }
    }
}

/// A change with its values.
@usableFromInline
final class ChangeValues<Value: Sendable>: ChangeRecord, @unchecked Sendable {
    @usableFromInline let old: Value
    @usableFromInline let new: Value

    @inlinable
    init(_ old: Value, _ new: Value, _ facts: ChangeFacts) {
        self.old = old
        self.new = new
        super.init(facts)
    }

    override func merging(_ earlier: ChangeRecord) -> ChangeRecord {
        var merged = facts
        merged.skipped += earlier.facts.skipped + 1
        merged.depth = max(merged.depth, earlier.facts.depth)
        return ChangeValues(StateChange(earlier).old, new, merged)
    }

    override var beginning: ChangeRecord {
        var facts = facts
        facts.skipped = 0
        return ChangeValues(new, new, facts)
    }
}
