import Glibc
import StateEngine

/// The pages of a store as they lie on disk, with those of the log over those of the database.
///
/// Read without SQLite, which reads nothing of a database whose header or root is damaged, and nothing below a damaged
/// interior page. With pread and not mapped: where the disk gives an error it costs this page, and no signal.
final class StorePages {
    /// Bytes of a page.
    let pageByteCount: Int
    /// Pages are numbered from 1 to this.
    let pageCount: Int

    private let database: Int32
    private let log: LogPages?
    private var last: (number: Int, bytes: [UInt8]) = (0, [])

    /// Opens the files of a store.
    ///
    /// - Throws: ``StateError/Code/storage``, where there is neither a database that can be opened nor a log.
    init(_ location: StoreLocation) throws(StateError) {
        let descriptor = open(location.database, O_RDONLY | O_CLOEXEC)
        let reason = lastSystemError()
        database = descriptor
        log = LogPages(path: location.log)
        var status = stat()
        if descriptor >= 0 { fstat(descriptor, &status) }
        let header = readBytes(descriptor, count: 18, at: 0) ?? []
        let stated = header.count == 18 ? Int(header[16]) << 8 | Int(header[17]) : 0
        // Of the sizes that there are none becomes another when one bit is turned over.
        pageByteCount =
            log?.pageByteCount
            ?? (StorePages.isPageSize(stated) ? stated : HistorySchema.pageByteCount)
        let written = (Int(status.st_size) + pageByteCount - 1) / pageByteCount
        pageCount = min(log?.pageCount ?? written, Int(UInt32.max))
        guard descriptor >= 0 || log != nil else {
            throw StateError(.storage, "\(location.database) cannot be read: \(reason)")
        }
    }

    deinit { if database >= 0 { close(database) } }

    /// The bytes of a page; nil where they cannot be read.
    func page(_ number: Int) -> [UInt8]? {
        guard (1...max(1, pageCount)).contains(number) else { return nil }
        if last.number == number { return last.bytes }
        guard let bytes = log?.page(number) ?? readPage(number) else { return nil }
        last = (number, bytes)
        return bytes
    }

    private func readPage(_ number: Int) -> [UInt8]? {
        readBytes(database, count: pageByteCount, at: (number - 1) * pageByteCount)
    }

    /// The record that begins in a cell of the page with these bytes; nil where a page is missing on its way.
    func record(_ cell: TreePage.Cell, in page: [UInt8]) -> [UInt8]? {
        if cell.overflow == 0 { return Array(page[cell.local]) }
        guard cell.byteCount <= pageCount * pageByteCount else { return nil }
        var record = Array(page[cell.local])
        var next = cell.overflow
        while record.count < cell.byteCount {
            guard next > 1, let bytes = self.page(next) else { return nil }
            record += bytes[4..<min(bytes.count, 4 + cell.byteCount - record.count)]
            next = bytes.number(at: 0, bytes: 4)
        }
        return record
    }

    /// The pages on which the record that begins in a cell goes on.
    func overflowPages(of cell: TreePage.Cell) -> [Int] {
        var numbers: [Int] = []
        var next = cell.overflow
        var rest = cell.byteCount - cell.local.count
        while rest > 0, let bytes = page(next) {
            numbers.append(next)
            rest -= pageByteCount - 4
            next = bytes.number(at: 0, bytes: 4)
        }
        return numbers
    }

    static func isPageSize(_ size: Int) -> Bool {
        (512...65_536).contains(size) && size & (size - 1) == 0
    }
}

/// `count` bytes at `offset`, with zeros behind the end of the file; nil where they cannot be read.
func readBytes(_ descriptor: Int32, count: Int, at offset: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var end = 0
    while end < count {
        let received = bytes.withUnsafeMutableBytes { bytes in
            pread(
                descriptor,
                bytes.baseAddress.map { $0 + end },
                count - end,
                off_t(offset + end)
            )
        }
        if received < 0, errno == EINTR { continue }
        guard received >= 0 else { return nil }
        if received == 0 { break }
        end += received
    }
    return end > 0 ? bytes : nil
}

extension [UInt8] {
    /// The number in `count` bytes from `offset` on, the most significant first; 0 where they are not there.
    func number(at offset: Int, bytes count: Int) -> Int {
        guard offset >= 0, offset + count <= self.count else { return 0 }
        return self[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
    }
}
