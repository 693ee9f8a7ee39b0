/// A change with bytes of its own, and without what it supersedes: what memory, or a later change,
/// knows of one that may have left the history.
package struct PastChange: Hashable, Sendable {
    package var place: HistoryPlace
    package var created: Int64
    package var owner: UInt32
    package var version: Int64
    package var time: Int64
    package var expires: Int64?
    package var cause: [UInt8]
    /// Nil for a delete.
    package var value: [UInt8]?

    package init(
        at place: HistoryPlace,
        created: Int64,
        owner: UInt32,
        version: Int64,
        time: Int64,
        expires: Int64?,
        cause: [UInt8],
        value: [UInt8]?
    ) {
        (self.place, self.created, self.owner) = (place, created, owner)
        (self.version, self.time, self.expires) = (version, time, expires)
        (self.cause, self.value) = (cause, value)
    }

    /// Copies a version in memory.
    init(_ record: Record, cause: Bytes) {
        self.init(
            at: record.place,
            created: record.created,
            owner: record.owner,
            version: record.version,
            time: record.time,
            expires: record.storedExpiry,
            cause: Array(cause),
            value: record.value.map { Array($0) }
        )
    }

    /// Calls `receive` with the change of `key`, whose bytes are borrowed.
    package func withChange(of key: Bytes, _ receive: (borrowing StoredChange) -> Void) {
        cause.withUnsafeBytes { cause in
            func pass(_ value: Bytes?) {
                receive(
                    StoredChange(
                        revision: place.revision,
                        ordinal: place.ordinal,
                        key: key,
                        value: value,
                        created: created,
                        owner: owner,
                        version: version,
                        time: time,
                        expires: expires,
                        cause: cause,
                        previousRevision: 0,
                        previousOrdinal: 0
                    )
                )
            }
            if let value { value.withUnsafeBytes { pass($0) } } else { pass(nil) }
        }
    }
}
