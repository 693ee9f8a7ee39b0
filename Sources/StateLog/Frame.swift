import StateModel
import StateSystem

/// One write to a log.
///
/// ```
/// 0   length of the frame, a multiple of 8                    4 bytes
/// 4   CRC-32C of the seed, the place, and all that follows    4
/// 8   the same of the frame before                            4
/// 12  kind, how many bytes fill the frame up                  2 × 1
/// 14  the lower half of a CRC-32C of the seed, the place and the head
///                                                             2
/// 16  up to where the log was durable: segment, offset        8, 8
/// 32  milliseconds since 1970                                 8
/// 40  contents
/// ```
struct Frame: Hashable, Sendable {
    enum Kind: UInt8 {
        case commits = 1
        /// The segment ends; its contents name the next one.
        case closing
        /// Nothing: it says how far the log is durable.
        case mark
        /// A life of the store begins: see ``LogLife``.
        case life
    }

    static let headByteCount = 40
    /// Frames begin at multiples of it.
    static let alignment = 8

    var kind: Kind
    /// Up to where the log was durable when the frame was written.
    var durable: LogPlace
    var time: Int64
    var commits: CodedCommits
    /// Whether somebody has seen its commits already, so that nothing may undo them; not in the log.
    var isPublished = false

    var contents: [UInt8] { commits.bytes }
    var byteCount: Int { Frame.byteCount(ofContents: contents.count) }

    static func byteCount(ofContents count: Int) -> Int {
        (headByteCount + count + alignment - 1) / alignment * alignment
    }

    /// Appends the frame as it is at `place`.
    ///
    /// - Parameters:
    ///   - bytes: Receives it.
    ///   - place: Where it will be.
    ///   - seed: That of the segment.
    ///   - before: The checksum of the frame before.
    /// - Returns: Its checksum.
    func append(
        to bytes: inout [UInt8],
        at place: LogPlace,
        seed: UInt64,
        after before: UInt32
    ) -> UInt32 {
        let start = bytes.count
        var head = LogWriterBytes()
        head.append(fixed: UInt32(byteCount))
        head.append(fixed: 0 as UInt32)
        head.append(fixed: before)
        head.append(kind.rawValue)
        let fill = byteCount - Frame.headByteCount - contents.count
        head.append(UInt8(fill))
        head.append(fixed: 0 as UInt16)
        head.append(fixed: durable.segment)
        head.append(fixed: UInt64(durable.offset))
        head.append(fixed: time)
        bytes += head.bytes
        bytes += contents
        for _ in 0..<fill { bytes.append(0) }
        return bytes.withUnsafeMutableBytes { all in
            let frame = UnsafeMutableRawBufferPointer(rebasing: all[start...])
            let headChecksum = Frame.headChecksum(of: Bytes(frame), at: place, seed: seed)
            frame.storeBytes(of: headChecksum.littleEndian, toByteOffset: 14, as: UInt16.self)
            let checksum = Frame.checksum(of: Bytes(frame), at: place, seed: seed)
            frame.storeBytes(of: checksum.littleEndian, toByteOffset: 4, as: UInt32.self)
            return checksum
        }
    }

    private static func checksum(of frame: Bytes, at place: LogPlace, seed: UInt64) -> UInt32 {
        let length = UInt64(frame.count)
        return Checksum.crc32c(
            Bytes(rebasing: frame[8...]),
            seed: [seed, place.segment, UInt64(place.offset), length]
        )
    }

    /// Bytes of a client that look like the heads of long frames would otherwise cost a checksum of all
    /// that follows, each: a start took minutes.
    private static func headChecksum(of frame: Bytes, at place: LogPlace, seed: UInt64) -> UInt16 {
        let length = UInt64(frame.loadUnaligned(as: UInt32.self).littleEndian)
        let (kind, fill) = (UInt64(frame[12]), UInt64(frame[13]))
        let checksum = Checksum.crc32c(
            Bytes(rebasing: frame[16..<headByteCount]),
            seed: [seed, place.segment, UInt64(place.offset), length << 16 | kind << 8 | fill]
        )
        return UInt16(truncatingIfNeeded: checksum)
    }

    /// A frame that was read, whose contents are borrowed.
    struct Found {
        var kind: Kind
        var checksum: UInt32
        var before: UInt32
        var durable: LogPlace
        var time: Int64
        var byteCount: Int
        var contents: Bytes
    }

    /// The next place at which a frame may begin: none begins with zeros, which most of a segment is.
    static func nextStart(in bytes: Bytes, from offset: Int) -> Int {
        var place = offset
        while place + alignment <= bytes.count,
            bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self) == 0
        {
            place += alignment
        }
        return place
    }

    /// What the frame at the start of `bytes` says that its length is; nil if that is none.
    static func length(_ bytes: Bytes) -> Int? {
        guard bytes.count >= headByteCount else { return nil }
        let length = Int(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)))
        return length >= headByteCount && length % alignment == 0 ? length : nil
    }

    /// The length of the frame whose head may be at the start of `bytes`; nil if that is no head.
    static func lengthInHead(_ bytes: Bytes, at place: LogPlace, seed: UInt64) -> Int? {
        guard let length = length(bytes) else { return nil }
        let fill = Int(bytes[13])
        let checksum = bytes.loadUnaligned(fromByteOffset: 14, as: UInt16.self).littleEndian
        guard fill < alignment, length >= headByteCount + fill, Kind(rawValue: bytes[12]) != nil,
            checksum == headChecksum(of: bytes, at: place, seed: seed)
        else { return nil }
        return length
    }

    /// The frame at the start of `bytes`, if its checksum is right; nil if there is none.
    ///
    /// It says nothing of the frame before: see ``Found/before``.
    static func read(_ bytes: Bytes, at place: LogPlace, seed: UInt64) -> Found? {
        func fixed<Value: FixedWidthInteger>(_ offset: Int, _: Value.Type) -> Value {
            Value(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Value.self))
        }
        guard let length = lengthInHead(bytes, at: place, seed: seed), length <= bytes.count,
            let kind = Kind(rawValue: bytes[12])
        else { return nil }
        let fill = Int(bytes[13])
        let frame = Bytes(rebasing: bytes[..<length])
        let checksum = fixed(4, UInt32.self)
        guard checksum == Frame.checksum(of: frame, at: place, seed: seed),
            let offset = Int(exactly: fixed(24, UInt64.self))
        else { return nil }
        return Found(
            kind: kind,
            checksum: checksum,
            before: fixed(8, UInt32.self),
            durable: LogPlace(segment: fixed(16, UInt64.self), offset: offset),
            time: fixed(32, Int64.self),
            byteCount: length,
            contents: Bytes(rebasing: frame[headByteCount..<(length - fill)])
        )
    }
}
