import CLinux
public import StateEngine

/// What one change did, but for the values.
@usableFromInline
struct ChangeFacts: Sendable {
    @usableFromInline let revision: Revision
    @usableFromInline var skipped = 0
    @usableFromInline let cause: Cause
    /// How many changes in a row led to this one, each made while the one before was told.
    var depth: Int64
    /// Its place among the changes that its core told of.
    var number: Int64 = 0
}

/// A change without its values: all that queues, filters and slots need of it.
///
/// So none of them is generic. Code that is generic and not specialised, as any is that a program calls in another module,
/// asks the runtime for its types at each step: 500 ns for what costs 30 here.
///
/// Everything is constant, in ``ChangeValues`` too: the proof of `@unchecked Sendable`.
@usableFromInline
package class ChangeRecord: @unchecked Sendable {
    @usableFromInline final let facts: ChangeFacts

    init(_ facts: ChangeFacts) { self.facts = facts }

    /// This change and the `earlier` one of the same values that nobody was told of, as one.
    func merging(_ earlier: ChangeRecord) -> ChangeRecord {
        preconditionFailure("a change without values cannot be merged")
    }

    /// The value that this change left, for one who begins with it.
    var beginning: ChangeRecord { preconditionFailure("a change without values begins nothing") }

    /// Has `body` take this change, in `scope`; what it changes counts as led to by this one.
    final func tell(in scope: StateScope?, _ body: (ChangeRecord) -> Void) {
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
