import CLinux
import StatePlatform
import StateSystem

/// The file that holds a reserved revision: 4 KiB, preallocated, overwritten in place.
///
/// ```
/// slot 0 at byte 0, slot 1 at byte 2048, each of 24 bytes, little-endian:
///     0  "revsceil"     8  the reserved revision     16  0     20  CRC-32C of bytes 0 to 19
/// ```
///
/// The slots are written in turn, so that a write that a crash tore leaves the other. A damaged
/// slot was either torn, or it was intact once and is the newer of the two. Nobody can know which,
/// so the reserved revision is then taken as one block above the intact slot, which is as far as
/// the other can have been.
package struct ReservedRevisionFile: Sendable {
    static let byteCount = 4_096
    static let slotByteCount = 24
    static let slotOffsets = [0, 2_048]
    private static let magic = Array("revsceil".utf8)

    let path: String

    /// The contents of a file.
    package struct Contents: Equatable, Sendable {
        /// No revision above it was published.
        package var reserved: Int64
        /// The slot to write next; nil if one is damaged.
        package var nextSlot: Int?
    }

    /// The file at `path`, which may be missing.
    package init(path: String) { self.path = path }

    /// Reads the file; nil if there is none.
    ///
    /// - Throws: ``StateError/Code/corrupt`` if neither slot is intact; ``StateError/Code/storage``
    ///   if the file cannot be read.
    package func read() throws(StateError) -> Contents? {
        guard let descriptor = try open() else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: ReservedRevisionFile.byteCount)
        guard pread(descriptor, &bytes, bytes.count, 0) >= 0 else { throw failed("read") }
        let slots = ReservedRevisionFile.slotOffsets.map { offset in
            ReservedRevisionFile.reserved(
                in: bytes[offset..<offset + ReservedRevisionFile.slotByteCount]
            )
        }
        switch (slots[0], slots[1]) {
        case (let first?, let second?):
            return Contents(reserved: max(first, second), nextSlot: first > second ? 1 : 0)
        case (let left?, nil), (nil, let left?):
            return Contents(reserved: left + RevisionReservation.largestBlock, nextSlot: nil)
        case (nil, nil):
            throw StateError(
                .corrupt,
                "\(path) is damaged and the reserved revision is lost; restore it, or move it away "
                    + "to start at revision 0 with a new epoch"
            )
        }
    }

    /// Overwrites one slot and syncs it.
    func write(_ reserved: Int64, slot: Int) throws(StateError) {
        guard let descriptor = try open() else {
            errno = ENOENT
            throw failed("opened")
        }
        defer { close(descriptor) }
        let bytes = ReservedRevisionFile.slot(reserved)
        let offset = off_t(ReservedRevisionFile.slotOffsets[slot])
        errno = 0
        guard pwrite(descriptor, bytes, bytes.count, offset) == bytes.count else {
            // If the write ends early, no call reports why.
            if errno == 0 { errno = ENOSPC }
            throw failed("written")
        }
        guard clinux_sync_data(descriptor) == 0 else { throw failed("synced") }
    }

    /// Creates or replaces the file atomically.
    func replace(_ reserved: Int64) throws(StateError) {
        var bytes = [UInt8](repeating: 0, count: ReservedRevisionFile.byteCount)
        for offset in ReservedRevisionFile.slotOffsets {
            let slot = ReservedRevisionFile.slot(reserved)
            bytes.replaceSubrange(offset..<offset + slot.count, with: slot)
        }
        try WholeFile.replace(path, with: bytes)
    }

    /// The open file; nil if there is none.
    private func open() throws(StateError) -> Int32? {
        do throws(OpenFailure) { return try NamedFile.open(path, O_RDWR | O_NOFOLLOW) } catch {
            if error.isAbsence { return nil }
            throw StateError(.storage, error.sentence(path))
        }
    }

    private func failed(_ what: String) -> StateError {
        StateError(.storage, "\(path) cannot be \(what): \(lastSystemError())")
    }

    // MARK: A slot

    /// The bytes of a slot.
    package static func slot(_ reserved: Int64) -> [UInt8] {
        var bytes = magic
        bytes += (0..<8).map { UInt8(truncatingIfNeeded: reserved >> ($0 * 8)) }
        bytes += [0, 0, 0, 0]
        let checksum = bytes.withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) }
        return bytes + (0..<4).map { UInt8(truncatingIfNeeded: checksum >> ($0 * 8)) }
    }

    /// The reserved revision in a slot; nil if the slot is damaged.
    private static func reserved(in slot: ArraySlice<UInt8>) -> Int64? {
        let reserved = slot.dropFirst(8).prefix(8).reversed().reduce(0) { $0 << 8 | Int64($1) }
        let isPossible = (0...RevisionReservation.largestRevision).contains(reserved)
        return isPossible && Array(slot) == ReservedRevisionFile.slot(reserved) ? reserved : nil
    }
}
