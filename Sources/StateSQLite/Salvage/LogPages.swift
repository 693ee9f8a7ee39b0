import Glibc

/// The pages that a write-ahead log holds, up to its last commit.
///
/// The log ends before the first frame that does not have the salts of the header or whose checksum, which continues that
/// of the frame before, is another: what SQLite itself takes for the end.
/// https://www.sqlite.org/fileformat2.html#walformat
final class LogPages {
    let pageByteCount: Int
    /// Pages of the database after the last commit.
    private(set) var pageCount = 0

    private let descriptor: Int32
    /// Where the newest frame of each page begins.
    private var offsets: [Int: Int] = [:]

    private static let headerByteCount = 32
    private static let frameHeaderByteCount = 24

    /// Reads the log at `path`; nil where there is none with a commit in it.
    init?(path: String) {
        let opened = open(path, O_RDONLY | O_CLOEXEC)
        guard opened >= 0 else { return nil }
        descriptor = opened
        let header = readBytes(opened, count: LogPages.headerByteCount, at: 0) ?? []
        pageByteCount = header.number(at: 8, bytes: 4)
        let magic = header.number(at: 0, bytes: 4)
        guard magic | 1 == 0x377F_0683, StorePages.isPageSize(pageByteCount) else { return nil }
        var sum = LogChecksum(isBigEndian: magic & 1 == 1)
        sum.add(header[0..<24])
        guard sum.isEqual(to: header, at: 24) else { return nil }
        readFrames(salts: header[16..<24], sum)
        if pageCount == 0 { return nil }
    }

    deinit { close(descriptor) }

    /// The page as the log has it; nil where it does not.
    func page(_ number: Int) -> [UInt8]? {
        offsets[number].flatMap {
            readBytes(
                descriptor,
                count: pageByteCount,
                at: $0 + LogPages.frameHeaderByteCount
            )
        }
    }

    /// The pages that it has.
    var pages: [ClosedRange<Int>] { offsets.keys.filter { $0 > 0 }.map { $0...$0 } }

    private func readFrames(salts: ArraySlice<UInt8>, _ header: LogChecksum) {
        var sum = header
        var offset = LogPages.headerByteCount
        var open: [Int: Int] = [:]
        let frameByteCount = LogPages.frameHeaderByteCount + pageByteCount
        while let frame = readBytes(descriptor, count: frameByteCount, at: offset),
            frame[8..<16] == salts
        {
            sum.add(frame[0..<8])
            sum.add(frame[LogPages.frameHeaderByteCount...])
            guard sum.isEqual(to: frame, at: 16) else { return }
            open[frame.number(at: 0, bytes: 4)] = offset
            let committed = frame.number(at: 4, bytes: 4)
            if committed > 0 {
                pageCount = committed
                offsets.merge(open) { $1 }
                open.removeAll(keepingCapacity: true)
            }
            offset += frameByteCount
        }
    }
}

/// The running checksum of a log, over pairs of words.
private struct LogChecksum {
    let isBigEndian: Bool
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { bytes in
            for offset in stride(from: 0, to: bytes.count - 7, by: 8) {
                first &+= word(bytes, offset) &+ second
                second &+= word(bytes, offset + 4) &+ first
            }
        }
    }

    private func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
    }

    /// Whether the eight bytes at `offset` say the same; they are big-endian always.
    func isEqual(to bytes: [UInt8], at offset: Int) -> Bool {
        bytes.number(at: offset, bytes: 4) == Int(first)
            && bytes.number(at: offset + 4, bytes: 4) == Int(second)
    }
}
