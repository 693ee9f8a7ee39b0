/// Changes as the rows of a backup.
///
/// ```
/// revision 8, ordinal 4, owner 4, created 8, version 8, time 8, previous revision 8,
/// previous ordinal 4, flags 1 (1: a value, 2: it expires), expires 8, key length 4,
/// cause length 4, value length 8, key, cause, value
/// ```
///
/// All numbers are little-endian. A row needs no checksum: its frame has one.
extension StoredChange {
    private static let fixedByteCount = 77

    /// Appends the row.
    ///
    /// - Complexity: O(*n*) in its bytes.
    package func appendBackupRow(to bytes: inout [UInt8]) {
        bytes.append(littleEndian: revision)
        bytes.append(littleEndian: ordinal)
        bytes.append(littleEndian: owner)
        bytes.append(littleEndian: created)
        bytes.append(littleEndian: version)
        bytes.append(littleEndian: time)
        bytes.append(littleEndian: previousRevision)
        bytes.append(littleEndian: previousOrdinal)
        bytes.append((value == nil ? 0 : 1) | (expires == nil ? 0 : 2))
        bytes.append(littleEndian: expires ?? 0)
        bytes.append(littleEndian: UInt32(key.count))
        bytes.append(littleEndian: UInt32(cause.count))
        bytes.append(littleEndian: Int64(value?.count ?? 0))
        bytes.append(contentsOf: key)
        bytes.append(contentsOf: cause)
        if let value { bytes.append(contentsOf: value) }
    }

    /// Passes the rows of a frame, whose checksum was checked; their bytes are those of `bytes`.
    ///
    /// - Returns: Whether they are exactly `count` rows that can have been written.
    package static func forEachBackupRow<E: Error>(
        in bytes: Bytes,
        count: Int,
        _ body: (borrowing StoredChange) throws(E) -> Void
    ) throws(E) -> Bool {
        var start = 0
        for _ in 0..<count {
            guard let (change, end) = backupRow(in: bytes, at: start) else { return false }
            try body(change)
            start = end
        }
        return start == bytes.count
    }

    private static func backupRow(
        in bytes: Bytes,
        at start: Int
    ) -> (change: StoredChange, end: Int)? {
        guard bytes.count - start >= fixedByteCount else { return nil }
        func number<Number: FixedWidthInteger>(_ place: Int, _: Number.Type) -> Number {
            Number(
                littleEndian: bytes.loadUnaligned(fromByteOffset: start + place, as: Number.self)
            )
        }
        let flags = bytes[start + 52]
        let (keyCount, causeCount) = (Int(number(61, UInt32.self)), Int(number(65, UInt32.self)))
        let valueCount = number(69, Int64.self)
        let rest = bytes.count - start - fixedByteCount
        guard keyCount + causeCount <= rest, valueCount >= 0,
            valueCount <= Int64(rest - keyCount - causeCount), flags < 4
        else { return nil }
        let key = start + fixedByteCount
        let cause = key + keyCount
        let value = cause + causeCount
        let end = value + Int(valueCount)
        let change = StoredChange(
            revision: number(0, Int64.self),
            ordinal: number(8, Int32.self),
            key: bytes.slice(key, cause),
            value: flags & 1 == 0 ? nil : bytes.slice(value, end),
            created: number(16, Int64.self),
            owner: number(12, UInt32.self),
            version: number(24, Int64.self),
            time: number(32, Int64.self),
            expires: flags & 2 == 0 ? nil : number(53, Int64.self),
            cause: bytes.slice(cause, value),
            previousRevision: number(40, Int64.self),
            previousOrdinal: number(48, Int32.self)
        )
        return (change, end)
    }
}
