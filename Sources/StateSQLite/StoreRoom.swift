import Glibc
import StateEngine

/// The room that a store has on its disk, and the part of it that only deletes and compaction may use.
///
/// A store that has filled its disk cannot heal by itself: what compaction frees lies in the database, into which the log cannot be
/// moved, for that makes the database longer first. So a file beside it keeps some room, and is removed once it is needed; from
/// then on nothing but deletes is committed until there is room again. On a disk that is too small for the file, as much stays
/// free from the start, as far as other programs let it.
final class StoreRoom {
    private let path: String
    private let directory: String
    /// How much is kept, in bytes; 0 for nothing.
    var reserveByteCount: Int64
    /// Why nothing but deletes is committed; nil if everything is.
    private(set) var shortage: StateError?
    /// Whether the file is there.
    private(set) var hasReserve = false

    init(_ location: StoreLocation, reserveByteCount: Int64) {
        path = location.reserve
        directory = location.directory
        self.reserveByteCount = reserveByteCount
        makeReserve()
    }

    /// What there is once the log is moved into the database, in bytes: on the disk, and in pages of the database that nothing uses.
    private func room(_ use: StoreUse) -> Int64 {
        availableByteCount - use.growthByteCount + use.freeByteCount
    }

    /// What the disk has for this user, in bytes; none if it cannot be asked.
    private var availableByteCount: Int64 { StoreRoom.availableByteCount(of: directory) }

    private static func availableByteCount(of directory: String) -> Int64 {
        var room = statvfs()
        guard statvfs(directory, &room) == 0 else { return 0 }
        return Int64(clamping: UInt64(room.f_bavail) * UInt64(room.f_frsize))
    }

    /// Whether it has to be looked after each commit: there is no file, so commits may use up what should stay.
    var isWatched: Bool { reserveByteCount > 0 && !hasReserve }

    /// Notes that the disk was full for a commit or a checkpoint, and gives the reserve up if it is needed.
    ///
    /// - Parameters:
    ///   - use: What the store has on the disk.
    ///   - byteCount: What the commit would have needed; 0 for a checkpoint.
    /// - Returns: Whether there is more room than before.
    func noteFull(_ use: StoreUse, byteCount: Int64) -> Bool {
        // There is room, but not for one as large.
        let spare = room(use)
        if byteCount > 0, spare >= reserveByteCount / 2, spare < 2 * byteCount + (1 << 20) {
            return false
        }
        let hadReserve = hasReserve
        if hadReserve { giveUp() }
        if reserveByteCount > 0 { beShort() }
        return hadReserve
    }

    /// Looks whether there is too little room, or enough again.
    func look(_ use: StoreUse) {
        guard reserveByteCount > 0 || hasReserve else { return shortage = nil }
        if hasReserve, reserveByteCount == 0 { giveUp() }
        guard !hasReserve else { return shortage = nil }
        let room = room(use)
        if shortage != nil, room >= reserveByteCount / 2 { shortage = nil }
        if shortage == nil, room < reserveByteCount / 4 { beShort() }
        if shortage == nil { makeReserve() }
    }

    private func beShort() {
        shortage = StateError(
            .noSpace,
            "the disk of \(directory) is full: until there is room, keys can be deleted but not set; "
                + "free some of the disk, or keep less history (statectl compact --to REVISION)"
        )
    }

    // MARK: The file

    /// A start writes a little; where there is no room for that, the reserve is given up before.
    static func giveUpReserveIfFull(_ location: StoreLocation) {
        if availableByteCount(of: location.directory) < 1 << 20 { unlink(location.reserve) }
    }

    /// Makes the file if the disk has as much again.
    private func makeReserve() {
        var status = stat()
        hasReserve = stat(path, &status) == 0 && Int64(status.st_size) == reserveByteCount
        guard !hasReserve else { return }
        unlink(path)
        guard reserveByteCount > 0, availableByteCount >= 2 * reserveByteCount else { return }
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let descriptor = open(path, flags, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        hasReserve = posix_fallocate(descriptor, 0, off_t(reserveByteCount)) == 0
        if !hasReserve { unlink(path) }
    }

    private func giveUp() {
        unlink(path)
        hasReserve = false
    }
}

/// What a store has on its disk.
struct StoreUse {
    /// By how much moving the log makes the database longer, in bytes.
    var growthByteCount: Int64
    /// Pages that nothing uses, in bytes.
    var freeByteCount: Int64
}
