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
    package let depth: Int64

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
        StateChange(
            old: earlier.old,
            new: new,
            revision: revision,
            skipped: skipped + earlier.skipped + 1,
            cause: cause,
            depth: max(depth, earlier.depth)
        )
    }
}
