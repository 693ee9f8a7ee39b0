import CLinux
import Glibc
package import StateEngine

/// What was last true of a store, kept beside it, so that an older copy which took its place is noticed.
///
/// Inode and birth time tell a copy from its original, but `cat backup > stated.db`, `rsync --inplace` and `cp` onto the file
/// keep both, and a file that was moved away comes back with its own. So each start and each clean stop gives the store a
/// new random *generation*, in `meta` and here, and each commit notes its revision here.
///
/// `<database>-mark`, 4 KiB, in the machine's byte order:
///
/// ```
/// 0     "statmark"
/// 8     the generation                   16  the one before, until the database is sure to have the new one; 0: none
/// 24    CRC-32C of bytes 0 to 23
/// 2048  the newest commit that was acknowledged, 48 bytes (``AcknowledgedCommit``)
/// ```
///
/// The generation is an extended attribute of this file too, where there are such: copying the bytes of the whole directory
/// back, this file's among them, leaves it. What was acknowledged is written for each commit, after its sync, without one of its
/// own, and outlives the process; a power failure may leave an older one, which notices less and is never wrong. The file is not
/// mapped: where somebody cuts it, or the disk cannot give or take a page of it, that would end the process by a signal.
///
/// A store of this generation, in the same files, that lacks what was acknowledged is damaged (``AcknowledgedCheck``). An older copy
/// that is put back into the same database *and* the same log, made while the store was open, where the process was killed in that
/// same run, looks the same: it is refused too.
///
/// What cannot be noticed from inside: a snapshot of the file system or the volume that is rolled back; all files put back into
/// the very same ones, this one with its attributes (`cp -a`, `rsync -X`), or without them where the copy was made while the
/// store was open and the process was killed in that same run.
package final class StoreStamp {
    private static let byteCount = 4_096
    private static let acknowledgedOffset = 2_048
    private static let magic: UInt64 = 0x6B72_616D_7461_7473
    private static let attribute = "user.stated.generation"

    let path: String
    private let descriptor: Int32
    /// What the file says.
    private var bytes: [UInt8]

    /// What the file says of the generation.
    private enum Record: Equatable {
        case absent
        case damaged
        case known(current: UInt64, previous: UInt64)
    }

    /// Opens the stamp at `path`, and makes it where it is absent.
    ///
    /// - Throws: ``StateError/Code/storage``, naming the file.
    package init(path: String) throws(StateError) {
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else { throw StoreStamp.failed(path) }
        var read = [UInt8](repeating: 0, count: StoreStamp.byteCount)
        let count = pread(opened, &read, read.count, 0)
        // Made as long as it will be: later a disk without room is none of its business.
        let rest = read.count - max(0, count)
        guard count >= 0,
            rest == 0 || pwrite(opened, Array(read.suffix(rest)), rest, off_t(count)) == rest
        else {
            let error = StoreStamp.failed(path)
            close(opened)
            throw error
        }
        self.path = path
        descriptor = opened
        bytes = read
    }

    /// Reads the stamp at `path` without changing it; an absent one is as an empty one.
    package init(reading path: String) {
        self.path = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        var read = [UInt8](repeating: 0, count: StoreStamp.byteCount)
        if descriptor >= 0 { pread(descriptor, &read, read.count, 0) }
        bytes = read
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The newest commit that was acknowledged.
    package var acknowledged: AcknowledgedCommit {
        get {
            let start = StoreStamp.acknowledgedOffset
            return AcknowledgedCommit(Array(bytes[start..<start + AcknowledgedCommit.byteCount]))
        }
        set {
            let start = StoreStamp.acknowledgedOffset
            // Without an array: it is on the way of each commit.
            withUnsafeBytes(of: newValue.words) { words in
                bytes.withUnsafeMutableBytes { bytes in
                    let room = bytes[start..<start + words.count]
                    UnsafeMutableRawBufferPointer(rebasing: room).copyMemory(from: words)
                }
                // Without success an older one stays, as after a power failure.
                pwrite(descriptor, words.baseAddress, words.count, off_t(start))
            }
        }
    }

    private func word<Word: FixedWidthInteger>(at offset: Int, as type: Word.Type) -> Word {
        bytes.withUnsafeBytes { $0.load(fromByteOffset: offset, as: Word.self) }
    }

    private func set(_ word: some FixedWidthInteger, at offset: Int) {
        bytes.withUnsafeMutableBytes {
            $0.storeBytes(of: word, toByteOffset: offset, as: type(of: word))
        }
    }

    /// Whether no store was ever marked here.
    var isAbsent: Bool { record == .absent }

    /// Why a database of this generation, at this revision, is not the one that was here last; nil where it is.
    func objection(toGeneration generation: UInt64?, revision: Int64) -> String? {
        let acknowledged = acknowledged.revision
        guard revision >= acknowledged else {
            return
                "it ends at revision \(revision), and \(path) says that \(acknowledged) was acknowledged"
        }
        let others = "\(path) says that another one was"
        switch record {
        case .absent: return generation == nil ? nil : "\(path) was not there, or empty"
        case .damaged: return "\(path) is damaged"
        case .known(let current, let previous):
            guard [current, previous].contains(generation ?? 0) else { return others }
            return hasAttribute(of: current, previous) ? nil : "the attributes of \(others)"
        }
    }

    /// Whether a database of this generation is the one that was here last.
    func isOf(generation: UInt64?) -> Bool {
        guard let generation, case .known(let current, let previous) = record else { return false }
        return [current, previous].contains(generation) && hasAttribute(of: current, previous)
    }

    /// Whether a copy of a store may have this stamp with a database of this generation; also true if either is not known.
    package func mayBeOf(generation: UInt64?) -> Bool {
        guard let generation, case .known(let current, let previous) = record else { return true }
        return [current, previous].contains(generation)
    }

    private func hasAttribute(of current: UInt64, _ previous: UInt64) -> Bool {
        attribute.map { $0 == current || $0 == previous } ?? true
    }

    /// Writes a new generation down, beside the one that the database has; the caller puts it there, then calls ``settle(_:)``.
    ///
    /// Until then there is no attribute: one of a generation that was begun and never came into the database would be taken for that
    /// of another store, once the next start has begun its own and is killed, too.
    ///
    /// - Throws: ``StateError/Code/storage``, if it cannot be synced.
    func begin(after generation: UInt64?) throws(StateError) -> UInt64 {
        let next = UInt64.random(in: 1...UInt64.max)
        clinux_remove_attribute(descriptor, StoreStamp.attribute)
        try write(next, previous: generation ?? 0)
        return next
    }

    /// The database has the generation: from now on no other counts.
    func settle(_ generation: UInt64) throws(StateError) {
        try write(generation, previous: generation)
        var value = generation
        let size = MemoryLayout<UInt64>.size
        // File systems without attributes have the record alone.
        _ = clinux_set_attribute(descriptor, StoreStamp.attribute, &value, size)
    }

    // MARK: The record

    private var record: Record {
        let words = (0..<3).map { word(at: $0 * 8, as: UInt64.self) }
        let checksum = word(at: 24, as: UInt32.self)
        if words == [0, 0, 0], checksum == 0 { return .absent }
        guard words[0] == StoreStamp.magic, words[1] != 0, checksum == clinux_crc32c(0, bytes, 24)
        else { return .damaged }
        return .known(current: words[1], previous: words[2])
    }

    private func write(_ current: UInt64, previous: UInt64) throws(StateError) {
        for (index, word) in [StoreStamp.magic, current, previous].enumerated() {
            set(word, at: index * 8)
        }
        set(clinux_crc32c(0, bytes, 24), at: 24)
        guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count, fsync(descriptor) == 0
        else {
            throw StoreStamp.failed(path)
        }
    }

    private var attribute: UInt64? {
        var value: UInt64 = 0
        let size = MemoryLayout<UInt64>.size
        let count = clinux_get_attribute(descriptor, StoreStamp.attribute, &value, size)
        return count == size ? value : nil
    }

    private static func failed(_ path: String) -> StateError {
        StateError(.storage, "\(path) cannot be used: \(lastSystemError())")
    }
}
