public import StateEngine

/// What one change did to a container.
///
/// One object, whatever the value: to hand it on costs a reference.
public struct StateChange<Value: Sendable>: Sendable {
    @usableFromInline let values: ChangeValues<Value>

    /// The value before; where changes were skipped, before the first of them.
    @inlinable public var old: Value { values.old }
    /// The value after.
    @inlinable public var new: Value { values.new }
    /// The commit.
    @inlinable public var revision: Revision { values.facts.revision }
    /// How many changes before this one its receiver was not told of by themselves.
    @inlinable public var skipped: Int { values.facts.skipped }
    /// Who made it, and where it is known why.
    @inlinable public var cause: Cause { values.facts.cause }
    /// The change without its values.
    package var record: ChangeRecord { values }

    package init(
        old: Value,
        new: Value,
        revision: Revision,
        skipped: Int = 0,
        cause: Cause,
        depth: Int64 = 0,
        number: Int64 = 0
    ) {
        let facts = ChangeFacts(
            revision: revision,
            skipped: skipped,
            cause: cause,
            depth: depth,
            number: number
        )
        values = ChangeValues(old, new, facts)
    }

    /// A change of which it is known that its values are of this type: it comes from a container of it.
    package init(_ record: ChangeRecord) {
        values = unsafeDowncast(record, to: ChangeValues<Value>.self)
    }
}
