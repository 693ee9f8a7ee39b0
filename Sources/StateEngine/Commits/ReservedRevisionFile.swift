import CLinux
import Glibc

/// The file that a reserved revision is kept in: 4 KiB, preallocated, overwritten in place.
///
/// ```
/// slot 0 at byte 0, slot 1 at byte 2048, each of 24 bytes, little-endian:
///     0  "revsceil"     8  the reserved revision     16  0     20  CRC-32C of bytes 0 to 19
/// ```
///
/// They are written in turn, so that one that a crash tore leaves the other. What is damaged of a file that is read was torn,
/// or it was whole once and is the newer of the two: as nobody can tell, the reserved revision is then taken for one block above the
/// slot that is left, which is as far as the other can have been.
package struct ReservedRevisionFile: Sendable {
    static let byteCount = 4_096
    static let slotByteCount = 24
    static let slotOffsets = [0, 2_048]
    private static let magic = Array("revsceil".utf8)

    let path: String

    /// What a file says.
    package struct Contents: Equatable, Sendable {
        /// No revision above it was told.
        package var reserved: Int64
        /// The slot to write next; nil where one is damaged.
        package var nextSlot: Int?
    }

    /// The file at `path`, which need not be there.
    package init(path: String) { self.path = path }

    /// Reads the file; nil where there is none.
    ///
    /// - Throws: ``StateError/Code/corrupt``, where neither slot is whole; ``StateError/Code/storage``, where it cannot be read.
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
                "\(path) is damaged: it no longer says up to where revisions were told; restore it, or move it "
                    + "away to begin at revision 0 under another epoch"
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
            // Where it ends early, no call says why.
            if errno == 0 { errno = ENOSPC }
            throw failed("written")
        }
        guard fdatasync(descriptor) == 0 else { throw failed("synced") }
    }

    /// Makes the file, in the place of one that is there, whole or not at all.
    func replace(_ reserved: Int64) throws(StateError) {
        var bytes = [UInt8](repeating: 0, count: ReservedRevisionFile.byteCount)
        for offset in ReservedRevisionFile.slotOffsets {
            let slot = ReservedRevisionFile.slot(reserved)
            bytes.replaceSubrange(offset..<offset + slot.count, with: slot)
        }
        try WholeFile.replace(path, with: bytes)
    }

    /// The open file; nil where there is none.
    private func open() throws(StateError) -> Int32? {
        let flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        let descriptor = Glibc.open(path, flags)
        if descriptor >= 0 { return descriptor }
        if errno == ENOENT { return nil }
        throw failed("opened")
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

    /// The reserved revision that a slot says; nil where it is damaged.
    private static func reserved(in slot: ArraySlice<UInt8>) -> Int64? {
        let reserved = slot.dropFirst(8).prefix(8).reversed().reduce(0) { $0 << 8 | Int64($1) }
        let isPossible = (0...RevisionReservation.largestRevision).contains(reserved)
        return isPossible && Array(slot) == ReservedRevisionFile.slot(reserved) ? reserved : nil
    }
}
