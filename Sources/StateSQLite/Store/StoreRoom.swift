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
    private var heldByteCount: Int64 = 0
    /// Why nothing but deletes is committed; nil if everything is.
    private(set) var shortage: StateError?

    /// What a checkpoint may need in one go, in bytes: the log is as long.
    private static let checkpointByteCount: Int64 = 9 << 20

    init(_ location: StoreLocation, reserveByteCount: Int64) {
        path = location.reserve
        directory = location.directory
        self.reserveByteCount = reserveByteCount
        var status = stat()
        if stat(path, &status) == 0 { heldByteCount = Int64(status.st_size) }
        fill()
    }

    /// What there is once the log is moved into the database, in bytes: on the disk, and in pages of the database that nothing uses.
    private func room(_ use: StoreUse) -> Int64 {
        availableByteCount - use.growthByteCount + use.freeByteCount + heldByteCount
    }

    /// What the disk has for this user, in bytes; none if it cannot be asked.
    private var availableByteCount: Int64 { StoreRoom.availableByteCount(of: directory) }

    private static func availableByteCount(of directory: String) -> Int64 {
        var room = statvfs()
        guard statvfs(directory, &room) == 0 else { return 0 }
        return Int64(clamping: UInt64(room.f_bavail) * UInt64(room.f_frsize))
    }

    /// Whether it has to be looked after each commit: the next checkpoint may need more than the file has.
    var isWatched: Bool {
        guard reserveByteCount > 0 else { return false }
        let isSmall = reserveByteCount < StoreRoom.checkpointByteCount
        return isSmall || heldByteCount < reserveByteCount
    }

    /// Gives a checkpoint what the disk lacks for it.
    func makeWay(_ use: StoreUse) {
        guard heldByteCount > 0 else { return }
        let lack = use.growthByteCount - availableByteCount
        if lack > 0 { cut(to: heldByteCount - lack - (64 << 10)) }
    }

    /// The disk was full for a commit, or for a checkpoint though it had room by its own account.
    ///
    /// - Parameters:
    ///   - use: What the store has on the disk.
    ///   - byteCount: Keys and values of the commit; 0 for a checkpoint.
    /// - Returns: Whether there is more room than before.
    func noteFull(_ use: StoreUse, byteCount: Int64) -> Bool {
        let room = room(use)
        // There is room, but not for one as large.
        if byteCount > 0, room >= reserveByteCount / 2, room < 2 * byteCount + (1 << 20) {
            return false
        }
        guard heldByteCount > 0 else { return false }
        cut(to: 0)
        if shortage == nil { beShort() }
        return true
    }

    /// Looks whether there is too little room, or enough again.
    func look(_ use: StoreUse) {
        guard reserveByteCount > 0 || heldByteCount > 0 else {
            shortage = nil
            return
        }
        let room = room(use)
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
        if availableByteCount(of: location.directory) < 1 << 20 { unlink(location.reserve) }
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

/// What a store has on its disk.
struct StoreUse {
    /// By how much moving the log makes the database longer, in bytes.
    var growthByteCount: Int64
    /// Pages that nothing uses, in bytes.
    var freeByteCount: Int64
}
