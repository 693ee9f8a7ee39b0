import StateModel
import StateSystem

/// A position in a log: a segment, and a number of bytes from its start.
package struct LogPlace: Hashable, Comparable, Sendable, CustomStringConvertible {
    package var segment: UInt64
    package var offset: Int

    package init(segment: UInt64, offset: Int) {
        (self.segment, self.offset) = (segment, offset)
    }

    package static let none = LogPlace(segment: 0, offset: 0)

    package static func < (one: LogPlace, other: LogPlace) -> Bool {
        (one.segment, one.offset) < (other.segment, other.offset)
    }

    package var description: String { "segment \(segment), byte \(offset)" }
}

/// What the first two blocks of a segment say, each by itself.
///
/// ```
/// 0   "stlog\r\n\0"
/// 8   format, oldest format that can still read it          2 × 4 bytes
/// 16  identity of the store, generation, number, seed       4 × 8
/// 48  predecessor: number, end, checksum of its last frame  8, 8, 4
/// 68  rewrite count                                         4
/// 72  carry line, original end, end                         3 × 8
/// 96  CRC-32C of all of that
/// ```
///
/// The first copy is written and synced before the second. So a crash leaves one that is whole: the
/// first, or the second of the life before.
struct SegmentHeader: Hashable, Sendable {
    /// A multiple of the size that a disk writes as one.
    static let blockByteCount = 4_096
    /// Where the frames begin.
    static let byteCount = 2 * blockByteCount
    /// The format of this program, and the oldest one that it can read.
    static let format: UInt32 = 2
    /// No release has written an older one.
    private static let oldestFormat: UInt32 = 2

    private static let magic = Array("stlog\r\n\0".utf8)
    private static let codedByteCount = 100

    var format = SegmentHeader.format
    var oldestReader: UInt32 = 2
    var epoch: Epoch
    /// ``LogLife/number`` of the life in which it was begun.
    var generation: UInt64 = 0
    /// 0 for a spare.
    var number: UInt64
    /// Secret and random, so that neither what was in the file before nor what clients send passes
    /// for a frame.
    var seed: UInt64
    /// Where the segment before ends; everything behind that is void.
    var predecessor = LogPlace.none
    var predecessorChecksum: UInt32 = 0
    var rewriteCount: UInt32 = 0
    /// Links to revisions below it are carried.
    var carryLine: Int64 = 0
    /// The end that a segment had before it was written again; 0 if it was not.
    var originalEnd = 0
    /// The end that it has since; 0 if it was not.
    var rewrittenEnd = 0

    /// One block.
    var coded: [UInt8] {
        var coded = LogWriterBytes()
        for byte in SegmentHeader.magic { coded.append(byte) }
        coded.append(fixed: format)
        coded.append(fixed: oldestReader)
        coded.append(fixed: epoch.bits)
        coded.append(fixed: generation)
        coded.append(fixed: number)
        coded.append(fixed: seed)
        coded.append(fixed: predecessor.segment)
        coded.append(fixed: UInt64(predecessor.offset))
        coded.append(fixed: predecessorChecksum)
        coded.append(fixed: rewriteCount)
        coded.append(fixed: carryLine)
        coded.append(fixed: UInt64(originalEnd))
        coded.append(fixed: UInt64(rewrittenEnd))
        coded.append(fixed: coded.bytes.withUnsafeBytes { Checksum.crc32c($0) })
        return coded.bytes
            + Array(repeating: 0, count: SegmentHeader.blockByteCount - coded.count)
    }

    /// - Throws: ``LogDamage``, if this is not a header.
    init(reading block: Bytes) throws(LogDamage) {
        guard block.count >= SegmentHeader.codedByteCount,
            Bytes(rebasing: block[..<8]).elementsEqual(SegmentHeader.magic)
        else { throw LogDamage("is not a segment of a log") }
        let summed = Bytes(rebasing: block[..<(SegmentHeader.codedByteCount - 4)])
        var reader = LogReaderBytes(Bytes(rebasing: block[8..<SegmentHeader.codedByteCount]))
        format = try reader.fixed(UInt32.self)
        oldestReader = try reader.fixed(UInt32.self)
        epoch = Epoch(bits: try reader.fixed(UInt64.self))
        generation = try reader.fixed(UInt64.self)
        number = try reader.fixed(UInt64.self)
        seed = try reader.fixed(UInt64.self)
        predecessor.segment = try reader.fixed(UInt64.self)
        predecessor.offset = Int(truncatingIfNeeded: try reader.fixed(UInt64.self))
        predecessorChecksum = try reader.fixed(UInt32.self)
        rewriteCount = try reader.fixed(UInt32.self)
        carryLine = try reader.fixed(Int64.self)
        originalEnd = Int(truncatingIfNeeded: try reader.fixed(UInt64.self))
        rewrittenEnd = Int(truncatingIfNeeded: try reader.fixed(UInt64.self))
        guard try reader.fixed(UInt32.self) == Checksum.crc32c(summed) else {
            throw LogDamage("has a header that is damaged")
        }
        let offsets = [predecessor.offset, originalEnd, rewrittenEnd]
        guard format >= SegmentHeader.oldestFormat, offsets.allSatisfy({ $0 >= 0 }), number < .max,
            number == 0 || predecessor.segment < number
        else { throw LogDamage("has a header that no released version writes") }
    }

    init(epoch: Epoch, number: UInt64) {
        (self.epoch, self.number) = (epoch, number)
        seed = .random(in: 1...UInt64.max)
    }

    /// The checksum that stands before the first frame.
    var checksum: UInt32 { coded.withUnsafeBytes { Checksum.crc32c($0) } }
}
