import StateModel

/// Changes as the rows of a backup; their layout is that of ``BackupRow``.
extension StoredChange {
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
            guard let row = BackupRow(in: bytes, at: start) else { return false }
            try body(StoredChange(row, in: bytes))
            start = row.end
        }
        return start == bytes.count
    }

    private init(_ row: BackupRow, in bytes: Bytes) {
        func number<Number: FixedWidthInteger>(_ place: Int, _: Number.Type) -> Number {
            bytes.number(at: row.start + place)
        }
        func part(_ range: Range<Int>) -> Bytes {
            bytes.slice(range.lowerBound, range.upperBound)
        }
        self.init(
            revision: number(0, Int64.self),
            ordinal: number(8, Int32.self),
            key: part(row.key),
            value: row.hasValue ? part(row.value) : nil,
            created: number(16, Int64.self),
            owner: number(12, UInt32.self),
            version: number(24, Int64.self),
            time: number(32, Int64.self),
            expires: row.expires ? number(53, Int64.self) : nil,
            cause: part(row.cause),
            previousRevision: number(40, Int64.self),
            previousOrdinal: number(48, Int32.self)
        )
    }
}
