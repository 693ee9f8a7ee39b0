import CLinux
public import StateEngine

/// What one change did, but for the values: all that queues, filters and slots need of it.
///
/// So none of them is generic. Code that is generic and not specialised, as any is that a program calls in another module,
/// asks the runtime for its types at each step: 500 ns for what costs 30 here.
///
/// Everything is constant, in ``ChangeValues`` too: the proof of `@unchecked Sendable`.
@usableFromInline
package class ChangeRecord: @unchecked Sendable {
    @usableFromInline final let revision: Revision
    @usableFromInline final let skipped: Int
    @usableFromInline final let cause: Cause
    /// How many changes in a row led to this one, each made while the one before was told.
    final let depth: Int64
    /// Its place among the changes that its core told of.
    final let number: Int64

    init(revision: Revision, skipped: Int, cause: Cause, depth: Int64, number: Int64) {
        self.revision = revision
        self.skipped = skipped
        self.cause = cause
        self.depth = depth
        self.number = number
    }

    /// This change and the `earlier` one of the same values that nobody was told of, as one.
    func merging(_ earlier: ChangeRecord) -> ChangeRecord {
        preconditionFailure("a change without values cannot be merged")
    }

    /// The value that this change left, for one who begins with it.
    var beginning: ChangeRecord { preconditionFailure("a change without values begins nothing") }

    /// Has `body` take this change, in `scope`; what it changes counts as led to by this one.
    final func tell(in scope: StateScope?, _ body: (ChangeRecord) -> Void) {
        let depth = clinux_depth()
        clinux_set_depth(self.depth + 1)
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

    init(
        _ old: Value,
        _ new: Value,
        revision: Revision,
        skipped: Int,
        cause: Cause,
        depth: Int64,
        number: Int64
    ) {
        self.old = old
        self.new = new
        super.init(
            revision: revision,
            skipped: skipped,
            cause: cause,
            depth: depth,
            number: number
        )
    }

    /// A change that is like another but for its values.
    init(_ old: Value, _ new: Value, like change: ChangeRecord, skipped: Int, depth: Int64) {
        self.old = old
        self.new = new
        super.init(
            revision: change.revision,
            skipped: skipped,
            cause: change.cause,
            depth: depth,
            number: change.number
        )
    }

    override func merging(_ earlier: ChangeRecord) -> ChangeRecord {
        ChangeValues(
            StateChange(earlier).old,
            new,
            like: self,
            skipped: skipped + earlier.skipped + 1,
            depth: max(depth, earlier.depth)
        )
    }

    override var beginning: ChangeRecord {
        ChangeValues(new, new, like: self, skipped: 0, depth: depth)
    }
}
