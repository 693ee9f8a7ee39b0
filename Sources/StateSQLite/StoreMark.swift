import CLinux
import Glibc
import StateEngine

/// What was last true of a store, kept beside it, so that an older copy which took its place is noticed.
///
/// Inode and birth time tell a copy from its original, but `cat backup > stated.db`, `rsync --inplace` and `cp` onto the file
/// keep both, and a file that was moved away comes back with its own. So each start and each clean stop gives the store a
/// new random *generation*, in `meta` and here, and each commit notes its revision here.
///
/// `<database>-mark`, 4 KiB, mapped, in the machine's byte order:
///
/// ```
/// 0     "statmark"
/// 8     the generation                   16  the one before, until the database is sure to have the new one; 0: none
/// 24    CRC-32C of bytes 0 to 23
/// 2048  the newest revision that was told
/// ```
///
/// The generation is an extended attribute of this file too, where there are such: copying the bytes of the whole directory
/// back, this file's among them, leaves it. The revision is a store to memory for each commit, and outlives the process; a
/// power failure may leave an older one, which notices less and is never wrong.
///
/// What cannot be noticed from inside: a snapshot of the file system or the volume that is rolled back; all files put back into
/// the very same ones, this one with its attributes (`cp -a`, `rsync -X`), or without them where the copy was made while the
/// store was open and the process was killed in that same run.
final class StoreMark {
    private static let byteCount = 4_096
    private static let toldOffset = 2_048
    private static let magic: UInt64 = 0x6B72_616D_7461_7473
    private static let attribute = "user.stated.generation"

    private let path: String
    private let descriptor: Int32
    private let bytes: UnsafeMutableRawPointer

    /// What the file says of the generation.
    private enum Record: Equatable {
        case absent
        case damaged
        case known(current: UInt64, previous: UInt64)
    }

    /// Opens the mark at `path`, and makes it where it is absent.
    ///
    /// - Throws: ``StateError/Code/storage``, naming the file.
    init(path: String) throws(StateError) {
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else { throw StoreMark.failed(path) }
        var status = stat()
        // Written rather than only made long: a store to a page that the disk has no room for would end the process.
        let zeros = [UInt8](repeating: 0, count: StoreMark.byteCount)
        guard fstat(opened, &status) == 0,
            status.st_size == StoreMark.byteCount
                || pwrite(opened, zeros, zeros.count, 0) == zeros.count,
            let mapped = mmap(
                nil,
                StoreMark.byteCount,
                PROT_READ | PROT_WRITE,
                MAP_SHARED,
                opened,
                0
            ), mapped != UnsafeMutableRawPointer(bitPattern: -1)
        else {
            let error = StoreMark.failed(path)
            close(opened)
            throw error
        }
        self.path = path
        descriptor = opened
        bytes = mapped
    }

    deinit {
        munmap(bytes, StoreMark.byteCount)
        close(descriptor)
    }

    /// The newest revision that was told; a number that none can be counts as damage, and as 0.
    var toldRevision: Int64 {
        get {
            let told = bytes.load(fromByteOffset: StoreMark.toldOffset, as: Int64.self)
            return (0..<1 << 53).contains(told) ? told : 0
        }
        set { bytes.storeBytes(of: newValue, toByteOffset: StoreMark.toldOffset, as: Int64.self) }
    }

    /// Whether no store was ever marked here.
    var isAbsent: Bool { record == .absent }

    /// Whether a database of this generation, at this revision, is the one that was here last.
    func isOf(generation: UInt64?, revision: Int64) -> Bool {
        guard revision >= toldRevision else { return false }
        switch record {
        case .absent: return generation == nil
        case .damaged: return false
        case .known(let current, let previous):
            let isKnown = [current, previous].contains(generation ?? 0)
            return isKnown && (attribute.map { $0 == current || $0 == previous } ?? true)
        }
    }

    /// Writes a new generation down, beside the one that the database has; the caller puts it there, then calls ``settle(_:)``.
    ///
    /// - Throws: ``StateError/Code/storage``, where it cannot be synced.
    func begin(after generation: UInt64?) throws(StateError) -> UInt64 {
        let next = UInt64.random(in: 1...UInt64.max)
        try write(next, previous: generation ?? 0)
        var value = next
        let size = MemoryLayout<UInt64>.size
        // One that is left from before would be taken for a restored store.
        if clinux_set_attribute(descriptor, StoreMark.attribute, &value, size) != 0 {
            clinux_remove_attribute(descriptor, StoreMark.attribute)
        }
        return next
    }

    /// The database has the generation: from now on no other counts.
    func settle(_ generation: UInt64) throws(StateError) {
        try write(generation, previous: generation)
    }

    // MARK: The record

    private var record: Record {
        let words = (0..<3).map { bytes.load(fromByteOffset: $0 * 8, as: UInt64.self) }
        let checksum = bytes.load(fromByteOffset: 24, as: UInt32.self)
        if words == [0, 0, 0], checksum == 0 { return .absent }
        guard words[0] == StoreMark.magic, words[1] != 0, checksum == clinux_crc32c(0, bytes, 24)
        else { return .damaged }
        return .known(current: words[1], previous: words[2])
    }

    private func write(_ current: UInt64, previous: UInt64) throws(StateError) {
        for (index, word) in [StoreMark.magic, current, previous].enumerated() {
            bytes.storeBytes(of: word, toByteOffset: index * 8, as: UInt64.self)
        }
        bytes.storeBytes(of: clinux_crc32c(0, bytes, 24), toByteOffset: 24, as: UInt32.self)
        guard msync(bytes, StoreMark.byteCount, MS_SYNC) == 0, fsync(descriptor) == 0 else {
            throw StoreMark.failed(path)
        }
    }

    private var attribute: UInt64? {
        var value: UInt64 = 0
        let size = MemoryLayout<UInt64>.size
        let count = clinux_get_attribute(descriptor, StoreMark.attribute, &value, size)
        return count == size ? value : nil
    }

    private static func failed(_ path: String) -> StateError {
        StateError(.storage, "\(path) cannot be used: \(lastSystemError())")
    }
}
