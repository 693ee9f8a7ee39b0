import StatePlatform

/// A place in a write-ahead log: a number of frames, all with these salts.
///
/// SQLite chooses new salts each time that it restarts the log at its beginning.
package struct LogPosition: Hashable {
    package var frameCount: Int
    /// The eight bytes of both salts, in the file's byte order.
    package var salts: UInt64

    /// The size of a log's header in bytes.
    static let headerByteCount = 32
    /// The size of a frame without its page, in bytes.
    package static let frameHeaderByteCount = 24
    /// The offset of the salts in the header of a frame.
    static let frameSaltsOffset = 8

    /// The offset of frame `number`, counted from 1.
    static func offset(ofFrame number: Int, pageByteCount: Int) -> Int {
        headerByteCount + (number - 1) * (frameHeaderByteCount + pageByteCount)
    }
}

/// The header of a write-ahead log, and how its frames are checked.
///
/// ```
/// header  0 magic (its lowest bit: big-endian sums)   4 version   8 page size
///         12 number of this log   16 salts   24 checksum of bytes 0 to 23
/// frame   0 page number   4 pages of the database after a commit, else 0   8 salts
///         16 checksum   24 the page
/// ```
///
/// The checksum of a frame continues that of the frame before, over bytes 0 to 7 and the page. For
/// SQLite, the log ends at the first frame with other salts or another checksum.
/// https://www.sqlite.org/fileformat2.html#walformat
package struct LogHeader {
    package let bytes: [UInt8]
    package let pageByteCount: Int
    package let isBigEndian: Bool
    /// Whether its checksum is right.
    package let isWhole: Bool

    /// Reads the header of the log open at `descriptor`; nil if the file is empty or cannot be
    /// read.
    ///
    /// For a damaged header, the page size is assumed to be the database's, which is `likely`, and
    /// the byte order that of this machine.
    package init?(_ descriptor: Int32, likely: Int = HistorySchema.pageByteCount) {
        guard let read = readBytes(descriptor, count: LogPosition.headerByteCount, at: 0) else {
            return nil
        }
        bytes = read
        let magic = read.number(at: 0, bytes: 4)
        let size = read.number(at: 8, bytes: 4)
        var sum = LogChecksum(isBigEndian: magic & 1 == 1)
        sum.add(read[0..<24])
        isWhole =
            magic | 1 == 0x377F_0683 && LogHeader.isPageSize(size) && sum.isEqual(to: read, at: 24)
        pageByteCount = isWhole ? size : likely
        isBigEndian = isWhole ? magic & 1 == 1 : 1.bigEndian == 1
    }

    private static func isPageSize(_ size: Int) -> Bool {
        (512...65_536).contains(size) && size & (size - 1) == 0
    }

    /// The page size in the header of the database open at `descriptor`; ours if it is damaged.
    ///
    /// None of the valid sizes becomes another by one flipped bit.
    package static func pageByteCount(ofDatabase descriptor: Int32) -> Int {
        // https://www.sqlite.org/fileformat2.html#database_header
        guard let header = readBytes(descriptor, count: 18, at: 0) else {
            return HistorySchema.pageByteCount
        }
        let size = Int(header[16]) << 8 | Int(header[17])
        return isPageSize(size) ? size : HistorySchema.pageByteCount
    }

    /// The salts of the frames that belong to the log, if the header is intact.
    package var salts: UInt64 { bytes.word(at: 16) }

    /// The checksum that the first frame continues, if the header is intact.
    package var checksum: LogChecksum {
        LogChecksum(storedIn: bytes, at: 24, isBigEndian: isBigEndian)
    }

    /// The size of a frame in bytes.
    package var frameByteCount: Int { LogPosition.frameHeaderByteCount + pageByteCount }

    /// The offset of frame `number`, counted from 1.
    package func offset(ofFrame number: Int) -> Int {
        LogPosition.offset(ofFrame: number, pageByteCount: pageByteCount)
    }

    /// The page number and the salts in a frame's header; nil if it cannot be read.
    package func frame(_ number: Int, in descriptor: Int32) -> (page: Int, salts: UInt64)? {
        let count = LogPosition.frameHeaderByteCount
        guard let bytes = readBytes(descriptor, count: count, at: offset(ofFrame: number)) else {
            return nil
        }
        return (bytes.number(at: 0, bytes: 4), bytes.word(at: LogPosition.frameSaltsOffset))
    }

    /// How many frames from the first on are intact, at most `limit`: those that SQLite reads.
    ///
    /// - Complexity: O(*n*) in the bytes of these frames.
    func wholeFrameCount(_ descriptor: Int32, upTo limit: Int) -> Int {
        guard isWhole else { return 0 }
        var sum = checksum
        for index in 0..<limit {
            let offset = offset(ofFrame: index + 1)
            guard let frame = readBytes(descriptor, count: frameByteCount, at: offset),
                frame.word(at: LogPosition.frameSaltsOffset) == salts
            else { return index }
            sum.add(frame: frame)
            guard sum.isEqual(to: frame, at: 16) else { return index }
        }
        return limit
    }
}

/// The running checksum of a log, over pairs of words.
package struct LogChecksum: Hashable {
    package let isBigEndian: Bool
    package private(set) var first: UInt32 = 0
    package private(set) var second: UInt32 = 0

    package init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    /// The checksum stored at `offset`; stored checksums are always big-endian.
    package init(storedIn bytes: [UInt8], at offset: Int, isBigEndian: Bool) {
        self.isBigEndian = isBigEndian
        first = UInt32(truncatingIfNeeded: bytes.number(at: offset, bytes: 4))
        second = UInt32(truncatingIfNeeded: bytes.number(at: offset + 4, bytes: 4))
    }

    package mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { bytes in
            for offset in stride(from: 0, to: bytes.count - 7, by: 8) {
                first &+= word(bytes, offset) &+ second
                second &+= word(bytes, offset + 4) &+ first
            }
        }
    }

    /// Adds the part of a frame that its checksum covers.
    package mutating func add(frame: [UInt8]) {
        add(frame[0..<8])
        add(frame[LogPosition.frameHeaderByteCount...])
    }

    private func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }

    /// Whether the eight bytes at `offset` are this checksum.
    func isEqual(to bytes: [UInt8], at offset: Int) -> Bool {
        self == LogChecksum(storedIn: bytes, at: offset, isBigEndian: isBigEndian)
    }
}

extension [UInt8] {
    /// The eight bytes at `offset` in memory order; 0 if they are out of range.
    package func word(at offset: Int) -> UInt64 {
        guard offset >= 0, offset + 8 <= count else { return 0 }
        return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
    }
}
