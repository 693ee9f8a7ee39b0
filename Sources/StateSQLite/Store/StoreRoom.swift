import Glibc
import StateEngine

/// The room that a store has on its disk, and the part of it that only deletes and compaction may use.
///
/// A store that has filled its disk cannot heal by itself: what compaction frees lies in the database, into which the log cannot be
/// moved, for that makes the database longer first. So a file beside it keeps some room, and is cut by what a checkpoint needs
/// once the disk has no more. Where a quarter of it is left, nothing but deletes is committed until there is room again: the rest is
/// for them. On a disk that is too small for the file, as much stays free from the start, as far as other programs let it.
final class StoreRoom {
    private let path: String
    private let directory: String
    /// How much is kept, in bytes; 0 for nothing.
    var reserveByteCount: Int64
    /// Bytes of the file.
    private var heldByteCount: Int64
    private let log: WriteAheadLog
    private let pageCount: SQLiteStatement
    private let freePageCount: SQLiteStatement
    /// Why nothing but deletes is committed; nil if everything is.
    private(set) var shortage: StateError?

    /// What a checkpoint may need in one go, in bytes: the log is as long.
    private static let checkpointByteCount: Int64 = 9 << 20

    init(
        _ location: StoreLocation,
        reserveByteCount: Int64,
        _ connection: SQLiteConnection,
        _ log: WriteAheadLog
    ) throws(SQLiteFailure) {
        path = location.reserve
        directory = location.directory
        self.reserveByteCount = reserveByteCount
        self.log = log
        pageCount = try connection.prepare("PRAGMA page_count")
        freePageCount = try connection.prepare("PRAGMA freelist_count")
        heldByteCount = fileByteCount(path) ?? 0
        fill()
    }

    /// What there is once the log is moved into the database, in bytes: on the disk, and in pages of the database that nothing uses.
    private var byteCount: Int64 {
        availableByteCount - growthByteCount + byteCount(freePageCount) + heldByteCount
    }

    /// By how much moving the log makes the database longer, in bytes.
    private var growthByteCount: Int64 {
        max(0, byteCount(pageCount) - log.status.databaseByteCount)
    }

    /// The bytes of as many pages as a statement yields; 0 if it fails, as it does if nothing can be read.
    private func byteCount(_ pages: SQLiteStatement) -> Int64 {
        defer { pages.reset() }
        guard (try? pages.step()) == true else { return 0 }
        return pages.number(at: 0) * Int64(HistorySchema.pageByteCount)
    }

    /// What the disk has for this user, in bytes; none if it cannot be asked.
    private var availableByteCount: Int64 { StoreRoom.availableByteCount(of: directory) ?? 0 }

    /// The same of a directory; nil with errno if it cannot be asked.
    static func availableByteCount(of directory: String) -> Int64? {
        var room = statvfs()
        guard statvfs(directory, &room) == 0 else { return nil }
        return Int64(clamping: UInt64(room.f_bavail) * UInt64(room.f_frsize))
    }

    /// Whether it has to be looked after each commit: the next checkpoint may need more than the file has.
    var isWatched: Bool {
        guard reserveByteCount > 0 else { return false }
        let isSmall = reserveByteCount < StoreRoom.checkpointByteCount
        return isSmall || heldByteCount < reserveByteCount
    }

    /// Gives a checkpoint what the disk lacks for it.
    func makeWay() {
        guard heldByteCount > 0 else { return }
        let lack = growthByteCount - availableByteCount
        if lack > 0 { cut(to: heldByteCount - lack - (64 << 10)) }
    }

    /// The disk was full for a commit, or for a checkpoint though it had room by its own account.
    ///
    /// - Parameter byteCount: Keys and values of the commit; 0 for a checkpoint.
    /// - Returns: Whether there is more room than before.
    func noteFull(byteCount: Int64) -> Bool {
        if byteCount > 0 {
            let room = self.byteCount
            // There is room, but not for one as large.
            if room >= reserveByteCount / 2, room < 2 * byteCount + (1 << 20) { return false }
        }
        guard heldByteCount > 0 else { return false }
        cut(to: 0)
        if shortage == nil { beShort() }
        return true
    }

    /// Looks whether the disk has room for more than deletes.
    func look() {
        guard reserveByteCount > 0 || heldByteCount > 0 else {
            shortage = nil
            return
        }
        let room = byteCount
        if shortage != nil, room >= reserveByteCount / 2 { shortage = nil }
        if shortage == nil, room < reserveByteCount / 4 { beShort() }
        if shortage == nil { fill() }
    }

    private func beShort() {
        shortage = StateError(
            .noSpace,
            "the disk of \(directory) is full: until there is room, keys can be deleted but not set; "
                + "free some of the disk, or keep less history (statectl compact --to REVISION)"
        )
    }

    // MARK: The file

    /// A start writes a little; where there is no room for that, the file is given up before.
    static func giveUpReserveIfFull(_ location: StoreLocation) {
        if availableByteCount(of: location.directory) ?? 0 < 1 << 20 { unlink(location.reserve) }
    }

    /// Makes the file as long as it should be, if the disk has as much again.
    private func fill() {
        guard heldByteCount != reserveByteCount else { return }
        if heldByteCount > reserveByteCount { return cut(to: reserveByteCount) }
        let lack = reserveByteCount - heldByteCount
        guard availableByteCount >= lack + reserveByteCount else { return }
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let descriptor = open(path, flags, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        if posix_fallocate(descriptor, 0, off_t(reserveByteCount)) == 0 {
            heldByteCount = reserveByteCount
        } else {
            ftruncate(descriptor, off_t(heldByteCount))
        }
    }

    private func cut(to byteCount: Int64) {
        heldByteCount = max(0, byteCount)
        if heldByteCount == 0 { unlink(path) } else { truncate(path, off_t(heldByteCount)) }
    }
}
