import CLinux
import StateEngine
import StatePlatform
import StateSystem

/// The files of an open store, by their identities when it was opened.
///
/// If somebody removes or replaces them, the process keeps files without names: it would continue
/// to acknowledge commits that no start finds.
struct StoreFiles: Sendable {
    private struct File {
        let path: String
        let number: Number?
    }

    private struct Number: Hashable {
        let device: UInt64
        let inode: UInt64

        /// Nil if the name does not exist; the reason is in `errno`.
        init?(of path: String) {
            var (device, inode): (UInt64, UInt64) = (0, 0)
            // Not by stat(2), with which a commit took half as long again.
            guard clinux_file_number(path, &device, &inode) == 0 else { return nil }
            (self.device, self.inode) = (device, inode)
        }
    }

    private let files: [File]
    private let names: NameWatch?
    /// What is wrong with files that change their names, as a sentence; nil if nothing is.
    private let others: @Sendable () -> String?

    /// Records the present files: the database, its log, and its stamp.
    init(_ location: StoreLocation) {
        self.init(
            [location.log, location.database, location.stamp],
            in: [location.directory]
        )
    }

    /// Records the present files; those that contain the commits are the first two, and `others`.
    init(
        _ paths: [String],
        in directories: [String],
        others: @escaping @Sendable () -> String? = { nil }
    ) {
        // First, so that no change goes unnoticed.
        names = NameWatch(directories)
        files = paths.map { File(path: $0, number: Number(of: $0)) }
        self.others = others
    }

    /// Which file is missing or replaced, as a sentence; nil if none is.
    ///
    /// - Complexity: One statx(2) for each, 1 µs.
    var finding: String? { finding(among: files[...]) }

    /// The same for the log and the database only, which contain the commits.
    ///
    /// Called after each commit, by one thread.
    ///
    /// - Complexity: One ioctl(2), 0.25 µs, if no name in the directory has changed since the last
    ///   call.
    var commitFinding: String? {
        if let names, !names.haveChanged { return nil }
        return finding(among: files[..<2])
    }

    private func finding(among files: ArraySlice<File>) -> String? {
        for file in files {
            guard let number = Number(of: file.path) else {
                return LostPlace.missing(file.path)
            }
            guard number == file.number else {
                return LostPlace.replaced(file.path, by: "file")
            }
        }
        return others()
    }
}

/// Chooses which files to check after a commit.
struct FileCheck {
    let files: StoreFiles
    private var commitCount = 0
    /// The time of the last check of all files, on the monotonic clock in nanoseconds.
    private var checkedAt: Int64 = 0

    init(_ files: StoreFiles) { self.files = files }

    /// Which file is missing or replaced, as a sentence; nil if none is.
    mutating func findingAfterCommit() -> String? {
        commitCount &+= 1
        let now = clinux_monotonic_nanoseconds()
        // Without the stamp, less would be noticed, but nothing lost.
        guard commitCount % 64 == 0 || now - checkedAt > 1_000_000_000 else {
            return files.commitFinding
        }
        checkedAt = now
        return files.finding
    }
}

/// The disk space of a store, and the part of it that is reserved for deletes and compaction.
///
/// A store that has filled its disk cannot recover by itself: compaction frees pages within the
/// database, but a checkpoint, which moves the log into it, makes the database longer first. So a file
/// beside the database reserves some space. When the disk is full, it is shortened by what a checkpoint
/// needs. When a quarter of it is left, only deletes are committed until there is space again. On a disk
/// that is too small for the file, the same amount is left free from the start.
final class StoreRoom {
    private let path: String
    private let directory: String
    /// The size of the reserve in bytes; 0 for none.
    var reserveByteCount: Int64
    /// The bytes of the file.
    private var heldByteCount: Int64
    private let log: WriteAheadLog
    private let pageCount: SQLiteStatement
    private let freePageCount: SQLiteStatement
    /// Why only deletes are committed; nil if all commits are.
    private(set) var shortage: StateError?
    /// Whether the disk refused a write although it reports room for it: a quota of a user, or a
    /// limit of a container, which statvfs(2) does not know.
    private var isDenied = false

    /// The most bytes that a checkpoint needs: the size of the log.
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

    /// The bytes that are available after a checkpoint: on the disk, and in free pages.
    private var byteCount: Int64 {
        availableByteCount - growthByteCount + byteCount(freePageCount) + heldByteCount
    }

    /// By how many bytes a checkpoint makes the database longer.
    private var growthByteCount: Int64 {
        max(0, byteCount(pageCount) - log.status.databaseByteCount)
    }

    /// The bytes of as many pages as a statement yields; 0 if it fails.
    private func byteCount(_ pages: SQLiteStatement) -> Int64 {
        defer { pages.reset() }
        guard (try? pages.step()) == true else { return 0 }
        return pages.number(at: 0) * Int64(log.pageByteCount)
    }

    /// The bytes that the disk has for this user; 0 if that is unknown.
    private var availableByteCount: Int64 { StoreRoom.availableByteCount(of: directory) ?? 0 }

    /// The same of a directory; nil with errno if it cannot be asked.
    static func availableByteCount(of directory: String) -> Int64? {
        var room = statvfs()
        guard statvfs(directory, &room) == 0 else { return nil }
        return Int64(clamping: UInt64(room.f_bavail) * UInt64(room.f_frsize))
    }

    /// Whether ``look()`` must follow each commit: the next checkpoint may need more than the reserve.
    var isWatched: Bool {
        guard reserveByteCount > 0 else { return false }
        let isSmall = reserveByteCount < StoreRoom.checkpointByteCount
        return isSmall || heldByteCount < reserveByteCount
    }

    /// Whether the disk has space for a log that grows while it is moved, and for what is moved.
    var isAmple: Bool { availableByteCount >= 6 * StoreRoom.checkpointByteCount }

    /// Makes space for a checkpoint.
    func makeWay() {
        guard heldByteCount > 0 else { return }
        let lack = growthByteCount - availableByteCount
        if lack > 0 { cut(to: heldByteCount - lack - (64 << 10)) }
    }

    /// Handles a full disk: a commit failed, or a checkpoint although the disk reported space.
    ///
    /// - Parameter byteCount: Keys and values of the commit; 0 for a checkpoint.
    /// - Returns: Whether there is more room than before.
    func noteFull(byteCount: Int64) -> Bool {
        if byteCount > 0 {
            let room = self.byteCount
            // There is room, but not for one as large.
            if room >= reserveByteCount / 2, room < 2 * byteCount + (1 << 20) { return false }
        }
        if !isDenied, availableByteCount >= 2 * byteCount + (1 << 20) {
            let held = heldByteCount
            isDenied = !hasGrant()
            if heldByteCount > held { cut(to: held) }
        }
        guard heldByteCount > 0 || isDenied else { return false }
        if shortage == nil { beShort() }
        guard heldByteCount > 0 else { return false }
        cut(to: 0)
        return true
    }

    /// Checks whether the disk has space for more than deletes.
    func look() {
        guard !isDenied || hasGrant() else { return }
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
            "disk full: writes to \(directory) are refused until there is room, deletes are not; "
                + "free some of the disk, or keep less history (statectl compact --to REVISION)"
        )
    }

    // MARK: The file

    /// Removes the reserve if the disk lacks the little space that a start needs.
    static func giveUpReserveIfFull(_ location: StoreLocation) {
        if availableByteCount(of: location.directory) ?? 0 < 1 << 20 { unlink(location.reserve) }
    }

    /// Extends the file to its size, if the disk has twice the space.
    private func fill() {
        guard heldByteCount != reserveByteCount else { return }
        if heldByteCount > reserveByteCount { return cut(to: reserveByteCount) }
        let lack = reserveByteCount - heldByteCount
        guard availableByteCount >= lack + reserveByteCount else { return }
        _ = allocate(reserveByteCount)
    }

    /// Extends the file.
    ///
    /// - Returns: Whether the disk has given as much; if not, the file is as it was.
    private func allocate(_ byteCount: Int64) -> Bool {
        let flags = O_WRONLY | O_CREAT | O_NOFOLLOW
        let descriptor = (try? NamedFile.open(path, flags)) ?? -1
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard clinux_allocate(descriptor, off_t(byteCount)) == 0 else {
            ftruncate(descriptor, off_t(heldByteCount))
            return false
        }
        heldByteCount = byteCount
        return true
    }

    /// Whether the disk gives again what it refused: only trying shows that.
    private func hasGrant() -> Bool {
        let byteCount = max(heldByteCount, reserveByteCount / 2, 1 << 20)
        guard allocate(byteCount) else { return false }
        isDenied = false
        return true
    }

    private func cut(to byteCount: Int64) {
        heldByteCount = max(0, byteCount)
        if heldByteCount == 0 { unlink(path) } else { truncate(path, off_t(heldByteCount)) }
    }
}
