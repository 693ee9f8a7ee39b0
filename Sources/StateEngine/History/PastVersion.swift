/// The fields of a version except key, value and cause.
package struct EntryFields: Sendable {
    /// The commit that made this version.
    package let revision: Int64
    /// The commit that created the entry.
    package let created: Int64
    /// How many times the entry was set since it was created.
    package let version: Int64
    /// Wall time in milliseconds since 1970.
    package let time: Int64
    /// The uid that created the entry.
    package let owner: UInt32
    /// Wall time in milliseconds since 1970 at which it expires; nil if it does not expire.
    package let expires: Int64?
    /// Whose end deletes it; nil if nobody's does.
    package let lifetime: Lifetime?

    /// The fields of a key that nobody has set.
    package static let none = EntryFields()

    private init() {
        (revision, created, version, time, owner) = (0, 0, 0, 0, .max)
        (expires, lifetime) = (nil, nil)
    }

    /// The fields in memory.
    package init(_ record: Record) {
        revision = record.revision
        created = record.created
        version = record.version
        time = record.time
        owner = record.owner
        expires = record.expires
        lifetime = record.holder?.lifetime
    }

    /// The fields in the history.
    init(_ change: borrowing StoredChange) {
        revision = change.revision
        created = change.created
        version = change.version
        time = change.time
        owner = change.owner
        expires = change.expires.flatMap { $0 < 0 ? nil : $0 }
        lifetime = Holder(stored: change.expires)?.lifetime
    }
}

/// A version of an entry that is no longer in memory, with bytes of its own.
package struct PastVersion: Sendable {
    package let fields: EntryFields
    package let value: [UInt8]
    /// Who wrote it: ``Cause/description`` in UTF-8.
    package let cause: [UInt8]

    /// About how many bytes one takes in a list, besides key and value.
    static let overheadByteCount = 128

    /// The version in the history, with an empty value if that is not needed; nil for a delete.
    package init?(_ change: borrowing StoredChange, needsValue: Bool = true) {
        guard let bytes = change.value else { return nil }
        fields = EntryFields(change)
        value = needsValue ? Array(bytes) : []
        cause = Array(change.cause)
    }

    /// The version in memory; nil for a delete.
    package init?(_ record: Record, in core: KeyspaceCore) {
        guard let bytes = record.value else { return nil }
        fields = EntryFields(record)
        value = Array(bytes)
        cause = core.causeBytes(of: record)
    }
}

extension StateError {
    /// The history does not reach back so far.
    package static func compacted(_ revision: Int64, oldest: Int64) -> StateError {
        StateError(
            .compacted,
            "revision \(revision) is compacted; the oldest available is \(oldest)"
        )
    }

    /// There is no such revision yet.
    package static func notYet(_ revision: Int64, current: Int64) -> StateError {
        StateError(
            .err,
            "revision \(revision) is above the current revision \(current)"
        )
    }
}
