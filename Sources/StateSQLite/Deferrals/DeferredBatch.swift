import CLinux
import StateEngine
import StatePlatform

/// A batch in the ``DeferralLog``: changes and metadata that the store gets in one transaction.
///
/// ```
/// 0   bytes of all of it        4  CRC-32C of the rest, continued from that of the batch before
/// 8   that of the batch before 12  the number of changes
/// 16  the number of metadata entries
/// 24  the last revision before it that the store or the log has
/// 32  its own last revision
/// 40  for each change: revision, created, version, time, expires (``RowChecksum``), previous
///     revision; ordinal, previous ordinal, owner, bytes of the value (all ones: a delete), of the
///     key, of the cause; key, value, cause
///     for each metadata entry: revision; bytes of the name, of the text (all ones: removed); name,
///     text
/// ```
package struct DeferredBatch {
    private static let headerByteCount = 40
    private static let none = UInt32.max

    /// All of it.
    let bytes: [UInt8]

    private func word<Word: FixedWidthInteger>(at offset: Int, as type: Word.Type) -> Word {
        bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Word.self) }
    }

    var checksum: UInt32 { word(at: 4, as: UInt32.self) }
    package var changeCount: Int { Int(word(at: 12, as: UInt32.self)) }
    private var metadataCount: Int { Int(word(at: 16, as: UInt32.self)) }
    /// The last revision before it that the store or the log has.
    var previousRevision: Int64 { word(at: 24, as: Int64.self) }
    package var lastRevision: Int64 { word(at: 32, as: Int64.self) }

    private static func sum(_ bytes: UnsafeRawBufferPointer, after checksum: UInt32) -> UInt32 {
        let head = clinux_crc32c(checksum, bytes.baseAddress, 4)
        return clinux_crc32c(head, bytes.baseAddress?.advanced(by: 8), bytes.count - 8)
    }

    // MARK: Writing

    /// Appends a batch to `bytes`.
    ///
    /// - Parameters:
    ///   - batch: What the store is to have.
    ///   - last: The checksum and the last revision of what is before it.
    ///   - bytes: Gets all of it.
    /// - Returns: Its checksum.
    static func append(
        _ batch: CommitBatch,
        after last: (checksum: UInt32, revision: Int64),
        to bytes: inout [UInt8]
    ) -> UInt32 {
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: headerByteCount))
        batch.forEachChange { append($0, to: &bytes) }
        let metadata = batch.metadata
        for entry in metadata { append(entry, to: &bytes) }
        let (count, changeCount) = (bytes.count - start, batch.changeCount)
        return bytes.withUnsafeMutableBytes { all in
            let bytes = UnsafeMutableRawBufferPointer(rebasing: all[start...])
            bytes.storeBytes(of: UInt32(truncatingIfNeeded: count), as: UInt32.self)
            bytes.storeBytes(of: last.checksum, toByteOffset: 8, as: UInt32.self)
            bytes.storeBytes(of: UInt32(changeCount), toByteOffset: 12, as: UInt32.self)
            bytes.storeBytes(of: UInt32(metadata.count), toByteOffset: 16, as: UInt32.self)
            bytes.storeBytes(of: last.revision, toByteOffset: 24, as: Int64.self)
            bytes.storeBytes(of: batch.storedRevision ?? 0, toByteOffset: 32, as: Int64.self)
            let checksum = sum(UnsafeRawBufferPointer(bytes), after: last.checksum)
            bytes.storeBytes(of: checksum, toByteOffset: 4, as: UInt32.self)
            return checksum
        }
    }

    private static func append(_ change: borrowing StoredChange, to bytes: inout [UInt8]) {
        bytes.append(word: change.revision)
        bytes.append(word: change.created)
        bytes.append(word: change.version)
        bytes.append(word: change.time)
        bytes.append(word: change.expires ?? .min)
        bytes.append(word: change.previousRevision)
        bytes.append(word: change.ordinal)
        bytes.append(word: change.previousOrdinal)
        bytes.append(word: change.owner)
        bytes.append(word: change.value.map { UInt32($0.count) } ?? none)
        bytes.append(word: UInt32(change.key.count))
        bytes.append(word: UInt32(change.cause.count))
        bytes.append(contentsOf: change.key)
        if let value = change.value { bytes.append(contentsOf: value) }
        bytes.append(contentsOf: change.cause)
    }

    private static func append(_ entry: MetadataEntry, to bytes: inout [UInt8]) {
        bytes.append(word: entry.revision)
        bytes.append(word: UInt32(entry.name.utf8.count))
        bytes.append(word: entry.text.map { UInt32($0.utf8.count) } ?? none)
        bytes.append(contentsOf: entry.name.utf8)
        if let text = entry.text { bytes.append(contentsOf: text.utf8) }
    }

    // MARK: Reading

    /// Reads the batch at a place of a file; nil if it is not one that follows on `checksum`.
    init?(in file: Int32, at place: Int, after checksum: UInt32) {
        guard let head = readBytes(file, count: DeferredBatch.headerByteCount, at: place) else {
            return nil
        }
        let count = head.withUnsafeBytes { Int($0.load(as: UInt32.self)) }
        var status = stat()
        guard count >= head.count, fstat(file, &status) == 0, place + count <= Int(status.st_size),
            let bytes = readBytes(file, count: count, at: place)
        else { return nil }
        self.bytes = bytes
        guard word(at: 8, as: UInt32.self) == checksum,
            self.checksum == bytes.withUnsafeBytes({ DeferredBatch.sum($0, after: checksum) })
        else { return nil }
    }

    /// The metadata, in order of revision.
    var metadata: [MetadataEntry] { read { _ in } }

    /// Calls `body` for each change, in order; its bytes are borrowed.
    ///
    /// - Returns: The metadata behind them.
    @discardableResult
    package func read<E: Error>(
        _ body: (borrowing StoredChange) throws(E) -> Void
    ) throws(E) -> [MetadataEntry] {
        try bytes.withUnsafeBufferPointer { (buffer) throws(E) in
            var reader = Reader(bytes: Bytes(buffer), place: DeferredBatch.headerByteCount)
            for _ in 0..<changeCount { try body(reader.change()) }
            return (0..<metadataCount).map { _ in reader.metadata() }
        }
    }

    /// What the checksum has proved to be as it was written.
    private struct Reader {
        let bytes: Bytes
        var place: Int

        mutating func word<Word: FixedWidthInteger>() -> Word {
            defer { place += MemoryLayout<Word>.size }
            return bytes.loadUnaligned(fromByteOffset: place, as: Word.self)
        }

        private mutating func take(_ count: Int) -> Bytes {
            defer { place += count }
            return Bytes(rebasing: bytes[place..<place + count])
        }

        private mutating func take(orNone count: UInt32) -> Bytes? {
            count == DeferredBatch.none ? nil : take(Int(count))
        }

        mutating func change() -> StoredChange {
            let (revision, created, version) = (word() as Int64, word() as Int64, word() as Int64)
            let (time, expires, previous) = (word() as Int64, word() as Int64, word() as Int64)
            let (ordinal, previousOrdinal) = (word() as Int32, word() as Int32)
            let (owner, valueCount) = (word() as UInt32, word() as UInt32)
            let (keyCount, causeCount) = (Int(word() as UInt32), Int(word() as UInt32))
            let key = take(keyCount)
            let value = take(orNone: valueCount)
            return StoredChange(
                revision: revision,
                ordinal: ordinal,
                key: key,
                value: value,
                created: created,
                owner: owner,
                version: version,
                time: time,
                expires: expires == .min ? nil : expires,
                cause: take(causeCount),
                previousRevision: previous,
                previousOrdinal: previousOrdinal
            )
        }

        mutating func metadata() -> MetadataEntry {
            let revision: Int64 = word()
            let (nameCount, textCount) = (Int(word() as UInt32), word() as UInt32)
            let name = String(decoding: take(nameCount), as: UTF8.self)
            let text = take(orNone: textCount).map { String(decoding: $0, as: UTF8.self) }
            return MetadataEntry(revision: revision, name: name, text: text)
        }
    }
}

extension [UInt8] {
    /// Appends a number in the machine's byte order.
    mutating func append(word: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: word) { append(contentsOf: $0) }
    }
}
