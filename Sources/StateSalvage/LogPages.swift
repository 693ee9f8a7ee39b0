import Glibc
import StateSQLite

/// The pages that a write-ahead log holds, up to its last commit, also those behind a frame that is damaged.
///
/// SQLite ends a log at the first frame that is not what was written. Here each frame is checked by itself: its checksum continues
/// the one that is stored in the frame before, so a damaged frame costs no other one. The log ends with the last commit that is
/// whole, or further behind, where the stamp of the store says that more was acknowledged. Frames with other salts are left of an
/// earlier log, whose pages are in the database.
///
/// A damaged frame of which one byte is wrong is put right (``LogRepair``). Of another one the page counts as it is, as a damaged
/// page of the database does, for its rows carry checksums; the version of it before is read too, for what the damage took.
final class LogPages {
    let pageByteCount: Int
    /// Pages of the database after the last commit.
    private(set) var pageCount = 0
    /// What is wrong with the log, a sentence each.
    private(set) var damage: [String] = []
    /// Whether a frame that is not whole may have been the newest version of its page.
    private(set) var mayLackPages = false
    /// Whether it is not known of which pages frames are missing: then the database, where the log may have been moved to, may have
    /// newer ones than the log.
    private(set) var isIncomplete = false
    /// Versions of pages that a later one supersedes, which is damaged: where they begin in the log.
    private(set) var earlierOffsets: [Int] = []
    /// Pages of which the database may have another version that says more.
    private(set) var earlierPages: [Int] = []

    private let descriptor: Int32
    /// Where the newest frame of each page begins.
    private var offsets: [Int: Int] = [:]
    /// What is put right, by the place in the file.
    private var repairs: [Int: UInt8] = [:]

    /// Reads the log at `path`; nil where there is none with a commit in it.
    ///
    /// - Parameters:
    ///   - path: The log.
    ///   - acknowledged: How far the stamp of the store says that a log went.
    init?(path: String, acknowledged: LogPosition?) {
        let opened = open(path, O_RDONLY | O_CLOEXEC)
        guard opened >= 0 else { return nil }
        descriptor = opened
        guard let header = LogHeader(opened) else {
            pageByteCount = HistorySchema.pageByteCount
            return nil
        }
        pageByteCount = header.pageByteCount
        if !header.isWhole { damage.append("the header of the log is not what was written") }
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

    /// The page as the log has it; nil where it does not.
    func page(_ number: Int) -> [UInt8]? { offsets[number].flatMap(page(at:)) }

    /// The page of the frame that begins at `offset`.
    func page(at offset: Int) -> [UInt8]? {
        let start = offset + LogPosition.frameHeaderByteCount
        guard var bytes = readBytes(descriptor, count: pageByteCount, at: start) else { return nil }
        for (place, byte) in repairs where (start..<start + pageByteCount).contains(place) {
            bytes[place - start] = byte
        }
        return bytes
    }

    /// The pages that it has, in order.
    var pages: [Range<Int>] { offsets.keys.filter { $0 > 0 }.sorted().map { $0..<$0 + 1 } }

    /// The salts of the log: where the header is damaged, those that two of header, first two frames and stamp have.
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
            // Where rows moved from page to page, those of the lost one are on the others as they were before.
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
        // Of the last commit the size may be what is damaged.
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
            damage.append("put right: \(place), byte \(repair.offset) of the file")
        }
        if frame.hasDamagedHeader {
            damage.append("put right: \(place), of which the page is whole and the header is not")
        }
        if frame.isWhole { return }
        let page = frame.page.map { "; it has page \($0)" } ?? ", and its page is not known"
        damage.append("\(place) is not what was written\(page)")
    }
}

extension [LogScan.Frame] {
    /// The frames of each commit; behind the last one, those that remain.
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
