import CLinux
package import StateEngine

/// The checksum of a row of the history: CRC-32C of all its other columns.
///
/// ```
///  0 revision   24 time               48 ordinal            60 value length (all ones: NULL)
///  8 created    32 expires            52 previous ordinal   64 key length
/// 16 version    40 previous revision  56 owner              68 cause length
/// 72 key bytes, value bytes, cause bytes
/// ```
///
/// Little-endian. `expires` NULL is the smallest Int64, `previous_…` NULL is 0, `cause` NULL has
/// length 0. So revision 1, ordinal 0, `k` = `v`, created 1, version 1, owner 0, time 1000 (ms),
/// all else NULL, is 74 bytes: `01…01…01…e803…` and so on; its checksum is 0x0C555CCA.
///
/// SQLite's own checksums (the cksumvfs extension) were rejected: they cover pages, use reserved
/// bytes that a plain `sqlite3` shell does not check, and do not detect rows that a wrong cell
/// count hides.
package struct RowChecksum {
    private var revision: Int64
    private var created: Int64
    private var version: Int64
    private var time: Int64
    private var expires: Int64
    private var previousRevision: Int64
    private var ordinal: Int32
    private var previousOrdinal: Int32
    private var owner: UInt32
    private var valueByteCount: UInt32
    private var keyByteCount: UInt32
    private var causeByteCount: UInt32

    private init(_ change: borrowing StoredChange) {
        revision = change.revision.littleEndian
        created = change.created.littleEndian
        version = change.version.littleEndian
        time = change.time.littleEndian
        expires = (change.expires ?? .min).littleEndian
        previousRevision = change.previousRevision.littleEndian
        ordinal = change.ordinal.littleEndian
        previousOrdinal = change.previousOrdinal.littleEndian
        owner = change.owner.littleEndian
        valueByteCount = UInt32(truncatingIfNeeded: change.value?.count ?? -1).littleEndian
        keyByteCount = UInt32(truncatingIfNeeded: change.key.count).littleEndian
        causeByteCount = UInt32(truncatingIfNeeded: change.cause.count).littleEndian
    }

    /// The checksum of the row of `change`.
    ///
    /// - Complexity: O(*n*) in the bytes of the row, eight at a time.
    package static func of(_ change: borrowing StoredChange) -> UInt32 {
        let fields = RowChecksum(change)
        var sum = withUnsafeBytes(of: fields) { clinux_crc32c(0, $0.baseAddress, $0.count) }
        sum = clinux_crc32c(sum, change.key.baseAddress, change.key.count)
        if let value = change.value { sum = clinux_crc32c(sum, value.baseAddress, value.count) }
        return clinux_crc32c(sum, change.cause.baseAddress, change.cause.count)
    }
}

extension StoredChange {
    /// Whether these numbers can belong to a change.
    ///
    /// A checksum proves that a row is unaltered, not who wrote it: numbers near the limits of
    /// Int64 would overflow in later arithmetic.
    package var isPossible: Bool {
        let revisions = 0...RevisionReservation.largestRevision
        return revision > 0 && revisions.contains(revision) && revisions.contains(created)
            && revisions.contains(version) && revisions.contains(previousRevision)
            && ordinal >= 0 && previousOrdinal >= 0
            && time.magnitude <= RevisionReservation.largestRevision.magnitude
            && expires ?? 0 >= -RevisionReservation.largestRevision
    }
}
