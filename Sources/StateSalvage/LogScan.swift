import Glibc
import StateSQLite

/// Reads the frames of a write-ahead log one by one, each checked by itself.
struct LogScan {
    /// A frame of the log.
    struct Frame {
        /// Counted from 1.
        let number: Int
        let offset: Int
        /// nil where that is not known.
        var page: Int?
        /// Pages of the database after it, where it ends a commit; else 0.
        var pageCount: Int
        var isWhole: Bool
        /// What makes it whole.
        var repair: LogRepair?
        /// Whether its page is whole and something else of it is not.
        var hasDamagedHeader = false

        fileprivate mutating func read(_ bytes: [UInt8]) {
            page = bytes.number(at: 0, bytes: 4)
            pageCount = bytes.number(at: 4, bytes: 4)
        }

        fileprivate mutating func take(_ repair: LogRepair, _ bytes: [UInt8]) {
            var bytes = bytes
            bytes[repair.offset] = repair.byte
            read(bytes)
            isWhole = true
            self.repair = LogRepair(offset: offset + repair.offset, byte: repair.byte)
        }
    }

    private let descriptor: Int32
    private let header: LogHeader
    private let salts: UInt64
    private var found: [Frame] = []
    /// The last frame as the file has it, where it does not match its checksum.
    private var damaged: Frame?
    /// What the checksum of the next frame may continue: one is as it is stored, the other what it should be.
    private var before: [LogChecksum]
    /// A frame takes some milliseconds to put right.
    private var repairsLeft = 1_000

    init(_ descriptor: Int32, _ header: LogHeader, salts: UInt64) {
        self.descriptor = descriptor
        self.header = header
        self.salts = salts
        var sum = LogChecksum(isBigEndian: header.isBigEndian)
        sum.add(header.bytes[0..<24])
        before = [header.checksum, sum]
    }

    /// The frames up to the last commit that is whole, and at least to frame number `least`.
    func frames(through least: Int) -> [Frame] {
        let last = found.last { $0.isWhole && $0.pageCount > 0 }?.number ?? 0
        return Array(found.prefix { $0.number <= max(last, least) })
    }

    /// Reads the file to its end, without a frame that is cut off there.
    mutating func run() {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return }
        var number = 1
        var wasOurs = true
        while true {
            let offset = header.offset(ofFrame: number)
            guard offset + header.frameByteCount <= Int(status.st_size),
                let start = header.frame(number, in: descriptor)
            else { return }
            let isOurs = start.salts == salts
            // Behind the end of the log there are zeros, or what is left of an earlier one.
            if isOurs || wasOurs {
                guard let bytes = readBytes(descriptor, count: header.frameByteCount, at: offset)
                else { return }
                wasOurs = take(bytes, number, offset, isOurs: isOurs)
            } else {
                found.append(Frame(number: number, offset: offset, pageCount: 0, isWhole: false))
                before = []
                wasOurs = false
            }
            number += 1
        }
    }

    /// - Returns: Whether the frame belongs to the log.
    private mutating func take(
        _ bytes: [UInt8],
        _ number: Int,
        _ offset: Int,
        isOurs: Bool
    ) -> Bool {
        let stored = LogChecksum(storedIn: bytes, at: 16, isBigEndian: header.isBigEndian)
        let sums = before.map { sum in
            var sum = sum
            sum.add(frame: bytes)
            return sum
        }
        var frame = Frame(number: number, offset: offset, pageCount: 0, isWhole: false)
        if let match = sums.firstIndex(of: stored) {
            if match > 0 { makeLastWhole(before: number) }
            before = [stored]
            frame.read(bytes)
            frame.isWhole = true
            frame.hasDamagedHeader = !isOurs
        } else if isOurs {
            before = [stored] + sums
            frame.read(bytes)
            damaged = frame
            if let repair = repair(bytes, sums, stored) { frame.take(repair, bytes) }
        } else {
            before = []
        }
        found.append(frame)
        return isOurs || frame.isWhole
    }

    /// What was stored in the frame before is what was wrong with it.
    private mutating func makeLastWhole(before number: Int) {
        guard var whole = damaged, whole.number == number - 1 else { return }
        whole.isWhole = true
        whole.hasDamagedHeader = true
        found[found.count - 1] = whole
    }

    private mutating func repair(
        _ bytes: [UInt8],
        _ sums: [LogChecksum],
        _ stored: LogChecksum
    ) -> LogRepair? {
        // Where the stored checksum may be what is wrong, the next frame tells.
        guard repairsLeft > 0, !sums.isEmpty, !sums.contains(where: { $0.isByteAway(from: stored) })
        else { return nil }
        repairsLeft -= 1
        let found = sums.flatMap { LogRepair.all(of: bytes, $0, stored) }
        return found.count == 1 ? found[0] : nil
    }
}

extension LogChecksum {
    /// Whether one byte of another checksum makes it this one.
    fileprivate func isByteAway(from other: LogChecksum) -> Bool {
        let difference = UInt64(first ^ other.first) << 32 | UInt64(second ^ other.second)
        return (0..<8).contains { difference & ~(0xFF << UInt64(8 * $0)) == 0 }
    }
}

/// A byte that makes the checksum of a frame right.
///
/// The sums are linear: in a frame with *m* pairs of words behind a word *w*, adding *d* to *w* adds *d* times two numbers that depend
/// on *m* alone. So of each byte and each difference it is known what they would do. Where exactly one byte does what is seen, it is the
/// one if only one is wrong; of the higher bytes of a word often several do, and then the frame stays as it is. The rows have
/// checksums of their own.
struct LogRepair: Hashable {
    /// Where the byte is.
    let offset: Int
    /// What it has to be.
    let byte: UInt8

    /// The bytes of `frame` any of which alone turns the checksum `sum`, which it has, into the one that is stored.
    static func all(of frame: [UInt8], _ sum: LogChecksum, _ stored: LogChecksum) -> [LogRepair] {
        let (first, second) = (stored.first &- sum.first, stored.second &- sum.second)
        let wordCount = (frame.count - LogPosition.frameHeaderByteCount + 8) / 4
        var repairs: [LogRepair] = []
        // What one more in the first and the second word of a pair adds to both sums.
        var even: (first: UInt32, second: UInt32) = (1, 1)
        var odd: (first: UInt32, second: UInt32) = (0, 1)
        for word in stride(from: wordCount - 2, through: 0, by: -2) {
            for (index, weight) in [(word, even), (word + 1, odd)] {
                for place in 0..<4 {
                    let shift = UInt32(8 * place)
                    for difference in -255...255 where difference != 0 {
                        let added = UInt32(bitPattern: Int32(difference)) << shift
                        guard added &* weight.first == first, added &* weight.second == second
                        else { continue }
                        let summed = index * 4 + (sum.isBigEndian ? 3 - place : place)
                        let offset =
                            summed < 8 ? summed : summed - 8 + LogPosition.frameHeaderByteCount
                        guard let byte = UInt8(exactly: Int(frame[offset]) + difference) else {
                            continue
                        }
                        repairs.append(LogRepair(offset: offset, byte: byte))
                    }
                }
            }
            even = step(even)
            odd = step(odd)
        }
        return repairs
    }

    /// What a pair of words that follows makes of both sums.
    private static func step(_ sums: (first: UInt32, second: UInt32)) -> (UInt32, UInt32) {
        (sums.first &+ sums.second, sums.first &+ 2 &* sums.second)
    }
}
