/// Where the parts of a row are in the payload of a frame.
///
/// ```
/// revision 8, ordinal 4, owner 4, created 8, version 8, time 8, previous revision 8,
/// previous ordinal 4, flags 1 (1: a value, 2: it expires), expires 8, key length 4,
/// cause length 4, value length 8, key, cause, value
/// ```
///
/// All numbers are little-endian. A row needs no checksum: its frame has one.
package struct BackupRow {
    package let start: Int
    package let key: Range<Int>
    package let cause: Range<Int>
    /// Empty for a delete.
    package let value: Range<Int>
    package let hasValue: Bool
    package let expires: Bool

    /// What follows the row.
    package var end: Int { value.upperBound }

    private static let fixedByteCount = 77

    /// The row that begins at `start`; nil if the bytes there are not a row.
    package init?(in bytes: Bytes, at start: Int) {
        let rest = bytes.count - start - BackupRow.fixedByteCount
        guard rest >= 0 else { return nil }
        func number<Number: FixedWidthInteger>(_ place: Int, _: Number.Type) -> Number {
            bytes.number(at: start + place)
        }
        let flags = bytes[start + 52]
        let (keyCount, causeCount) = (Int(number(61, UInt32.self)), Int(number(65, UInt32.self)))
        let valueCount = number(69, Int64.self)
        guard keyCount + causeCount <= rest, valueCount >= 0,
            valueCount <= Int64(rest - keyCount - causeCount), flags < 4
        else { return nil }
        self.start = start
        (hasValue, expires) = (flags & 1 != 0, flags & 2 != 0)
        let begin = start + BackupRow.fixedByteCount
        key = begin..<begin + keyCount
        cause = key.upperBound..<key.upperBound + causeCount
        value = cause.upperBound..<cause.upperBound + Int(valueCount)
    }
}

extension Bytes {
    /// A number of a row, the least byte first.
    package func number<Number: FixedWidthInteger>(at place: Int) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: place, as: Number.self))
    }
}

/// The keys with a value after the rows so far.
///
/// Of each key it keeps a hash of 64 bits: of ten million, two are the same once in 400,000 times.
struct LiveKeys {
    private var hashes: Set<Int> = []

    var count: Int { hashes.count }

    /// - Returns: Whether the rows of the frame can be read.
    mutating func take(_ frame: BackupFrame) -> Bool {
        frame.payload.withUnsafeBytes { bytes in
            var start = 0
            for _ in 0..<frame.itemCount {
                guard let row = BackupRow(in: bytes, at: start) else { return false }
                var hasher = Hasher()
                hasher.combine(bytes: bytes.slice(row.key.lowerBound, row.key.upperBound))
                let hash = hasher.finalize()
                if row.hasValue { hashes.insert(hash) } else { hashes.remove(hash) }
                start = row.end
            }
            return start == bytes.count
        }
    }
}
