public import StateEngine

/// What one change did to a container.
///
/// One object, whatever the value: passing it on costs one reference count.
public struct StateChange<Value: Sendable>: Sendable {
    @usableFromInline let values: ChangeValues<Value>

    /// The value before; if changes were skipped, the value before the first of them.
    @inlinable public var old: Value { values.old }
    /// The value after.
    @inlinable public var new: Value { values.new }
    /// The revision of the commit.
    @inlinable public var revision: Revision { values.facts.revision }
    /// How many changes before this one were merged into it for this receiver.
    @inlinable public var skipped: Int { values.facts.skipped }
    /// Who made the change and, if known, why.
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

    /// Wraps a record whose values are known to be of this type: it comes from a container of this
    /// type.
    package init(_ record: ChangeRecord) {
        values = unsafeDowncast(record, to: ChangeValues<Value>.self)
    }
}
