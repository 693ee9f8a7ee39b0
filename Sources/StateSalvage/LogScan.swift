import Glibc
import StateSQLite

/// Reads the frames of a write-ahead log one by one, each checked by itself.
struct LogScan {
    /// A frame of the log.
    struct Frame {
        /// From 1.
        let number: Int
        let offset: Int
        /// Nil if unknown.
        var page: Int?
        /// Pages of the database after the frame, if it ends a commit; otherwise 0.
        var pageCount: Int
        var isWhole: Bool
        /// The repair that makes it intact.
        var repair: LogRepair?
        /// Whether its page is intact and only its header is damaged.
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
    /// The last frame as it is in the file, if it does not match its checksum.
    private var damaged: Frame?
    /// The last frame, if it is damaged, or its checksum: the next one shows which.
    private var doubtful: (bytes: [UInt8], sums: [LogChecksum], stored: LogChecksum)?
    /// The checksums that the next frame may continue: the stored one, or the correct one.
    private var before: [LogChecksum]
    /// Repairing a frame takes some milliseconds.
    private var repairsLeft = 1_000

    init(_ descriptor: Int32, _ header: LogHeader, salts: UInt64) {
        self.descriptor = descriptor
        self.header = header
        self.salts = salts
        var sum = LogChecksum(isBigEndian: header.isBigEndian)
        sum.add(header.bytes[0..<24])
        before = [header.checksum, sum]
    }

    /// The frames up to the last intact commit, and at least to frame number `least`.
    func frames(through least: Int) -> [Frame] {
        let last = found.last { $0.isWhole && $0.pageCount > 0 }?.number ?? 0
        return Array(found.prefix { $0.number <= max(last, least) })
    }

    /// Reads the file to its end, except a frame that is cut off there.
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
            // Behind the end of the log are zeros, or the remains of an earlier log.
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
        defer { if frame.isWhole || !isOurs { doubtful = nil } }
        if let match = sums.firstIndex(of: stored) {
            if match > 0 { makeLastWhole(before: number) } else { repairLast() }
            before = [stored]
            frame.read(bytes)
            frame.isWhole = true
            frame.hasDamagedHeader = !isOurs
        } else if isOurs {
            before = [stored] + sums
            frame.read(bytes)
            damaged = frame
            let isInDoubt = sums.contains { $0.isByteAway(from: stored) }
            doubtful = isInDoubt ? (bytes, sums, stored) : nil
            if !isInDoubt, let repair = repair(bytes, sums, stored) { frame.take(repair, bytes) }
        } else {
            before = []
        }
        found.append(frame)
        return isOurs || frame.isWhole
    }

    /// Only the checksum stored in the previous frame was wrong.
    private mutating func makeLastWhole(before number: Int) {
        guard var whole = damaged, whole.number == number - 1 else { return }
        whole.isWhole = true
        whole.hasDamagedHeader = true
        found[found.count - 1] = whole
    }

    /// The checksum stored in the previous frame was right.
    private mutating func repairLast() {
        guard let last = doubtful, let repair = repair(last.bytes, last.sums, last.stored) else {
            return
        }
        found[found.count - 1].take(repair, last.bytes)
    }

    private mutating func repair(
        _ bytes: [UInt8],
        _ sums: [LogChecksum],
        _ stored: LogChecksum
    ) -> LogRepair? {
        guard repairsLeft > 0, !sums.isEmpty else { return nil }
        repairsLeft -= 1
        let found = sums.flatMap { LogRepair.all(of: bytes, $0, stored) }
        if found.count < 2 { return found.first }
        let right = found.filter { repair in
            var bytes = bytes
            bytes[repair.offset] = repair.byte
            let page = Array(bytes.dropFirst(LogPosition.frameHeaderByteCount))
            return TreePage(page, isFirst: false).hasWholeRows
        }
        return right.count == 1 ? right[0] : nil
    }
}

extension TreePage {
    /// Whether it is a leaf of the history whose rows match their checksums, as far as they are on
    /// it.
    fileprivate var hasWholeRows: Bool {
        guard kind == .leaf, cellCount <= pointerCount(before: bytes.count) else { return false }
        // In a made-up store all pointers may lead to one long row.
        var rest = bytes.count
        return (0..<cellCount).allSatisfy { index in
            guard let cell = cell(index), cell.local.count <= rest else { return false }
            rest -= cell.local.count
            if cell.overflow > 0 { return true }
            return bytes.withUnsafeBytes {
                StoredRecord.wholeRow($0.slice(cell.local.lowerBound, cell.local.upperBound)) != nil
            }
        }
    }
}

extension LogChecksum {
    /// Whether changing one byte of another checksum gives this one.
    fileprivate func isByteAway(from other: LogChecksum) -> Bool {
        let difference = UInt64(first ^ other.first) << 32 | UInt64(second ^ other.second)
        return (0..<8).contains { difference & ~(0xFF << UInt64(8 * $0)) == 0 }
    }
}

/// A byte that corrects the checksum of a frame.
///
/// The sums are linear: in a frame with *m* pairs of words behind a word *w*, adding *d* to *w*
/// adds *d* times two numbers that depend only on *m*. So the effect of each difference in each
/// byte is known. If exactly one byte has the observed effect, it is the wrong one, if only one is
/// wrong. Of the higher bytes of a word often several do; then it is the one with which the rows on
/// the page match their own checksums. If that may be several, the frame is not repaired.
struct LogRepair: Hashable {
    /// The offset of the byte.
    let offset: Int
    /// Its correct value.
    let byte: UInt8

    /// The bytes of `frame` each of which alone would turn the frame's checksum `sum` into the
    /// stored one.
    static func all(of frame: [UInt8], _ sum: LogChecksum, _ stored: LogChecksum) -> [LogRepair] {
        let (first, second) = (stored.first &- sum.first, stored.second &- sum.second)
        let wordCount = (frame.count - LogPosition.frameHeaderByteCount + 8) / 4
        var repairs: [LogRepair] = []
        // The effect on both sums of adding one to the first and the second word of a pair.
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

    /// The effect of a following pair of words on both sums.
    private static func step(_ sums: (first: UInt32, second: UInt32)) -> (UInt32, UInt32) {
        (sums.first &+ sums.second, sums.first &+ 2 &* sums.second)
    }
}
