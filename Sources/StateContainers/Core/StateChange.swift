import CLinux
public import StateEngine

/// What one change did to a container.
public struct StateChange<Value: Sendable>: Sendable {
    /// The value before; where changes were skipped, before the first of them.
    public let old: Value
    /// The value after.
    public let new: Value
    /// The commit.
    public let revision: Revision
    /// How many changes before this one its receiver was not told of by themselves.
    public let skipped: Int
    /// Who made it, and where it is known why.
    public let cause: Cause
    /// How many changes in a row led to this one, each made while the one before was told.
    package internal(set) var depth: Int64
    /// Its place among all changes that its container took, the first being 1.
    package internal(set) var number: Int64 = 0

    package init(
        old: Value,
        new: Value,
        revision: Revision,
        skipped: Int = 0,
        cause: Cause,
        depth: Int64 = 0
    ) {
        self.old = old
        self.new = new
        self.revision = revision
        self.skipped = skipped
        self.cause = cause
        self.depth = depth
    }

    /// This change and the `earlier` one that nobody was told of, as one.
    package func merging(_ earlier: StateChange) -> StateChange {
        var merged = with(old: earlier.old, new: new, skipped: skipped + earlier.skipped + 1)
        merged.depth = max(depth, earlier.depth)
        return merged
    }

    /// The value that this change left, for one who begins with it.
    var beginning: StateChange { with(old: new, new: new, skipped: 0) }

    /// The same change as one of other values: of a part, or of more than one change.
    func with<Part>(old: Part, new: Part, skipped: Int) -> StateChange<Part> {
        var change = StateChange<Part>(
            old: old,
            new: new,
            revision: revision,
            skipped: skipped,
            cause: cause,
            depth: depth
        )
        change.number = number
        return change
    }

    /// Has `body` take this change, in `scope`; what it changes counts as led to by this one.
    func tell(in scope: StateScope?, _ body: (StateChange) -> Void) {
        let depth = clinux_depth()
        clinux_set_depth(self.depth + 1)
        defer { clinux_set_depth(depth) }
        guard let scope else { return body(self) }
        StateScope.$current.withValue(scope) { body(self) }
    }
}
