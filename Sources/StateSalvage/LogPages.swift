import Glibc
import StateSQLite
import StateSystem

/// The pages in a write-ahead log, up to its last commit, including those behind a damaged frame.
///
/// SQLite ends a log at the first damaged frame. Here each frame is checked by itself: its checksum
/// continues the one that is stored in the frame before, so a damaged frame does not invalidate
/// others. The log ends with the last intact commit, or later, if the stamp of the store says that
/// more was acknowledged. Frames with other salts are remains of an earlier log, whose pages are in
/// the database.
///
/// A damaged frame with one wrong byte is repaired (``LogRepair``). Of any other, the page is used
/// as it is, like a damaged page of the database, because its rows have checksums; the version
/// before it is read too, for what the damage destroyed.
final class LogPages {
    let pageByteCount: Int
    /// Pages of the database after the last commit.
    private(set) var pageCount = 0
    /// The damage of the log, a sentence each.
    private(set) var damage: [String] = []
    /// Whether a damaged frame may have been the newest version of its page.
    private(set) var mayLackPages = false
    /// Whether the pages of some missing frames are unknown: then the database, to which the log
    /// may have been moved, may have newer versions than the log.
    private(set) var isIncomplete = false
    /// Offsets in the log of versions of pages that a later, damaged version supersedes.
    private(set) var earlierOffsets: [Int] = []
    /// Pages of which the database may have another version with more rows.
    private(set) var earlierPages: [Int] = []

    private let descriptor: Int32
    /// The offset of the newest frame of each page.
    private var offsets: [Int: Int] = [:]
    /// Repaired bytes, by their offset in the file.
    private var repairs: [Int: UInt8] = [:]

    /// Reads the log at `path`; nil if there is none with a commit.
    ///
    /// - Parameters:
    ///   - path: The log.
    ///   - likely: The page size of the database, for a log whose header is damaged.
    ///   - acknowledged: The end of a log according to the stamp of the store.
    init?(path: String, likely: Int, acknowledged: LogPosition?) {
        guard let opened = try? NamedFile.open(path, O_RDONLY) else { return nil }
        descriptor = opened
        guard let header = LogHeader(opened, likely: likely) else {
            pageByteCount = likely
            return nil
        }
        pageByteCount = header.pageByteCount
        if !header.isWhole { damage.append("the header of the log is damaged") }
        guard let salts = salts(header, acknowledged) else { return nil }
        var scan = LogScan(opened, header, salts: salts)
        scan.run()
        let isSame = acknowledged?.salts == salts
        let least = isSame ? acknowledged?.frameCount ?? 0 : 0
        let frames = scan.frames(through: least)
        if frames.count < least {
            damage.append("the log ends after \(frames.count) of \(least) acknowledged frames")
            isIncomplete = true
        }
        take(frames)
        if pageCount == 0 { return nil }
    }

    deinit { close(descriptor) }

    /// The page in the log; nil if the log does not have it.
    func page(_ number: Int) -> [UInt8]? { offsets[number].flatMap(page(at:)) }

    /// The page of the frame at `offset`.
    func page(at offset: Int) -> [UInt8]? {
        let start = offset + LogPosition.frameHeaderByteCount
        guard var bytes = readBytes(descriptor, count: pageByteCount, at: start) else { return nil }
        for (place, byte) in repairs where (start..<start + pageByteCount).contains(place) {
            bytes[place - start] = byte
        }
        return bytes
    }

    /// The pages in the log, in order.
    var pages: [Range<Int>] { offsets.keys.filter { $0 > 0 }.sorted().map { $0..<$0 + 1 } }

    /// The salts of the log; if the header is damaged, those on which two of header, first two
    /// frames and stamp agree.
    private func salts(_ header: LogHeader, _ acknowledged: LogPosition?) -> UInt64? {
        if header.isWhole { return header.salts }
        let frames = (1...2).compactMap { header.frame($0, in: descriptor)?.salts }
        let known = ([header.salts, acknowledged?.salts].compactMap { $0 } + frames)
            .filter { $0 != 0 }
        return known.first { salts in known.count { $0 == salts } > 1 }
    }

    private func take(_ frames: [LogScan.Frame]) {
        var damaged: Set<Int> = []
        var earlier: [Int: Int?] = [:]
        for commit in frames.split(after: { $0.isWhole && $0.pageCount > 0 }) {
            let pages = Set(commit.compactMap(\.page))
            // If rows moved between pages, those of the lost page are on the earlier versions of
            // the others.
            if commit.contains(where: { !$0.isWhole }) {
                for page in pages { earlier.updateValue(offsets[page], forKey: page) }
            }
            for frame in commit { note(frame) }
            for frame in commit where frame.page == nil { isIncomplete = true }
            for case (let frame, let page?) in commit.map({ ($0, $0.page) }) {
                if frame.isWhole { damaged.remove(page) } else { damaged.insert(page) }
                offsets[page] = frame.offset
                if frame.isWhole, frame.pageCount > 0 { pageCount = frame.pageCount }
            }
        }
        // The size in the last commit may be damaged.
        let end = frames.last { $0.isWhole && $0.pageCount > 0 }?.number ?? 0
        let limit = pageCount + frames.count
        for page in frames.filter({ $0.number > end }).compactMap(\.page) where page <= limit {
            pageCount = max(pageCount, page)
        }
        mayLackPages = isIncomplete || !damaged.isEmpty
        earlierOffsets = earlier.values.compactMap { $0 }.sorted()
        earlierPages = (isIncomplete ? Array(offsets.keys) : Array(earlier.keys)).sorted()
    }

    private func note(_ frame: LogScan.Frame) {
        let place = "frame \(frame.number) of the log"
        if let repair = frame.repair {
            repairs[repair.offset] = repair.byte
            damage.append("repaired: \(place), byte \(repair.offset) of the file")
        }
        if frame.hasDamagedHeader {
            damage.append("repaired: \(place), whose header was damaged")
        }
        if frame.isWhole { return }
        let page = frame.page.map { "; it has page \($0)" } ?? "; its page is unknown"
        damage.append("\(place) is damaged\(page)")
    }
}

extension [LogScan.Frame] {
    /// The frames of each commit; after the last one, the remaining frames.
    fileprivate func split(after isLast: (LogScan.Frame) -> Bool) -> [ArraySlice<LogScan.Frame>] {
        var parts: [ArraySlice<LogScan.Frame>] = []
        var start = startIndex
        for index in indices where isLast(self[index]) {
            parts.append(self[start...index])
            start = index + 1
        }
        return start < endIndex ? parts + [self[start...]] : parts
    }
}
