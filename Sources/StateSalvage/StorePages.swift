import Glibc
import StateEngine
import StateSQLite
import StateSystem

/// The pages of a store as they are on disk, with those of the log replacing those of the database.
///
/// Reads without SQLite, which reads nothing of a database whose header or root is damaged, and
/// nothing below a damaged interior page. Uses pread, not mmap: if the disk reports an error, that
/// costs only this page, and no signal.
final class StorePages {
    /// Bytes of a page.
    let pageByteCount: Int
    /// Pages are numbered from 1 to this.
    let pageCount: Int

    /// The pages that were written, in order.
    ///
    /// Further pages according to a header, a log or the length of a sparse file cost neither time
    /// nor memory.
    let written: RangeSet<Int>

    /// The damage of the log, a sentence each.
    var logDamage: [String] { log?.damage ?? [] }
    /// Whether the newest version of a page may be lost with a frame of the log.
    var mayLackPages: Bool { log?.mayLackPages ?? false }
    /// Numbers above those of the pages, by which earlier versions of pages are read whose newest
    /// version is damaged.
    var earlierVersions: [Int] {
        let count = (log?.earlierOffsets.count ?? 0) + (log?.earlierPages.count ?? 0)
        return Array(pageCount + 1..<pageCount + 1 + count)
    }

    private let database: Int32
    private let log: LogPages?
    private var last: (number: Int, bytes: [UInt8]) = (0, [])
    /// How many pages may still be read as the continuation of a record: each is read a few times,
    /// however often damaged cells point to it.
    private var continuationsLeft: Int

    /// Opens the files of a store.
    ///
    /// - Parameters:
    ///   - location: The files.
    ///   - acknowledged: The end of the log according to the stamp of the store.
    /// - Throws: ``StateError/Code/storage`` if there is neither a readable database nor a log.
    init(_ location: StoreLocation, acknowledged: LogPosition? = nil) throws(StateError) {
        let opened = Result { () throws(OpenFailure) in
            try NamedFile.open(location.database, O_RDONLY)
        }
        let descriptor = (try? opened.get()) ?? -1
        database = descriptor
        let likely = LogHeader.pageByteCount(ofDatabase: descriptor)
        log = LogPages(path: location.log, likely: likely, acknowledged: acknowledged)
        var status = stat()
        if descriptor >= 0 { fstat(descriptor, &status) }
        pageByteCount = log?.pageByteCount ?? likely
        let end = (Int(status.st_size) + pageByteCount - 1) / pageByteCount
        let isIncomplete = log?.isIncomplete ?? false
        let count = max(log?.pageCount ?? end, isIncomplete ? end : 0)
        pageCount = min(count, Int(UInt32.max))
        var written = RangeSet<Int>()
        for range in StorePages.extents(of: descriptor, pageByteCount) + (log?.pages ?? []) {
            written.insert(contentsOf: range.clamped(to: 1..<pageCount + 1))
        }
        self.written = written
        continuationsLeft = 0
        if log == nil, case .failure(let failure) = opened {
            throw StateError(.storage, failure.sentence(location.database, "read"))
        }
        beginPass()
    }

    /// Begins a pass over the pages: each may be read a few times again, whatever was read before.
    func beginPass() {
        continuationsLeft = 65_536 + 16 * written.ranges.reduce(0) { $0 + $1.count }
    }

    deinit { if database >= 0 { close(database) } }

    /// The bytes of a page; nil if they cannot be read.
    func page(_ number: Int) -> [UInt8]? {
        guard number > 0 else { return nil }
        if last.number == number { return last.bytes }
        let read =
            number > max(1, pageCount)
            ? earlierVersion(number - pageCount - 1) : log?.page(number) ?? readPage(number)
        guard let bytes = read else { return nil }
        last = (number, bytes)
        return bytes
    }

    /// The same as a page of a B-tree.
    func tree(_ number: Int) -> TreePage? {
        page(number).map { TreePage($0, isFirst: number == 1) }
    }

    private func earlierVersion(_ index: Int) -> [UInt8]? {
        guard let log else { return nil }
        if index < log.earlierOffsets.count { return log.page(at: log.earlierOffsets[index]) }
        let page = index - log.earlierOffsets.count
        return page < log.earlierPages.count ? readPage(log.earlierPages[page]) : nil
    }

    private func readPage(_ number: Int) -> [UInt8]? {
        readBytes(database, count: pageByteCount, at: (number - 1) * pageByteCount)
    }

    /// The pages after the first one that exist but were never written.
    var unwritten: RangeSet<Int> {
        RangeSet([2..<max(2, pageCount + 1)]).subtracting(written)
    }

    /// The record that begins in a cell of the page with these bytes; nil if one of its pages is
    /// missing, or appears twice.
    func record(_ cell: TreePage.Cell, in page: [UInt8]) -> [UInt8]? {
        var record = Array(page[cell.local])
        return follow(cell) { record += $1 } ? record : nil
    }

    /// The pages on which the record that begins in a cell continues.
    func overflowPages(of cell: TreePage.Cell) -> [Int] {
        var numbers: [Int] = []
        _ = follow(cell) { number, _ in numbers.append(number) }
        return numbers
    }

    /// Calls `body` with each page on which a record continues, and its part there.
    ///
    /// - Returns: Whether the record is complete.
    private func follow(_ cell: TreePage.Cell, _ body: (Int, ArraySlice<UInt8>) -> Void) -> Bool {
        var rest = cell.byteCount - cell.local.count
        var next = cell.overflow
        var visited: Set<Int> = []
        while rest > 0 {
            guard next > 1, continuationsLeft > 0, visited.insert(next).inserted,
                let bytes = page(next)
            else { return false }
            continuationsLeft -= 1
            let count = min(rest, pageByteCount - 4)
            body(next, bytes[4..<4 + count])
            rest -= count
            next = bytes.number(at: 0, bytes: 4)
        }
        return true
    }

    /// The pages of a file that are not holes: lseek(2), SEEK_DATA.
    private static func extents(of descriptor: Int32, _ pageByteCount: Int) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var end = 0
        while descriptor >= 0 {
            let start = lseek(descriptor, off_t(end), 3)
            guard start >= 0 else { break }
            end = Int(lseek(descriptor, start, 4))
            guard end > start else { break }
            ranges.append(Int(start) / pageByteCount + 1..<(end - 1) / pageByteCount + 2)
        }
        return ranges
    }
}
