import CLinux
import StateEngine
import StatePlatform
import StateSystem

/// The last known state of a store, kept beside it so that an older copy in its place is noticed.
///
/// Inode and birth time distinguish a copy from its original. But `cat backup > stated.db`, `rsync
/// --inplace` and `cp` onto the file keep both, and a file that was moved away comes back with its
/// own. So each start and each clean stop gives the store a new random *generation*, in `meta` and
/// here, and each commit records its revision here.
///
/// `<database>-mark`, 4 KiB, in the machine's byte order:
///
/// ```
/// 0     "statmark"
/// 8     the generation
/// 16    the one before, until the database surely has the new one; 0: none
/// 24    CRC-32C of bytes 0 to 23
/// 2048  the newest acknowledged commit, 48 bytes (``AcknowledgedCommit``)
/// ```
///
/// The generation is also an extended attribute of this file, if the file system supports them:
/// restoring the contents of the whole directory, including this file, does not restore it. The
/// acknowledged commit is written after each commit's sync, without a sync of its own, and survives
/// the end of the process. A power failure may leave an older one, which detects less, but is never
/// wrong. The file is not mapped: if somebody truncated it, or the disk failed to read or write a
/// page of it, a signal would end the process.
///
/// A store of this generation, in the same files, that lacks an acknowledged commit is damaged
/// (``AcknowledgedCheck``). One other case looks the same and is refused too: an older copy, made
/// while the store was open, is restored into the same database *and* the same log, and the process
/// was killed in that same run.
///
/// This cannot be noticed from inside: a snapshot of the file system or the volume is rolled back;
/// or all files are restored into the very same ones, including this one, with its attributes (`cp
/// -a`, `rsync -X`), or without them if the copy was made while the store was open and the process
/// was killed in that same run.
package final class StoreStamp {
    private static let byteCount = 4_096
    private static let acknowledgedOffset = 2_048
    private static let magic: UInt64 = 0x6B72_616D_7461_7473
    private static let attribute = "user.stated.generation"

    let path: String
    private let descriptor: Int32
    /// The contents of the file.
    private var bytes: [UInt8]

    /// The generation according to the file.
    private enum Record: Equatable {
        case absent
        case damaged
        case known(current: UInt64, previous: UInt64)
    }

    /// Opens the stamp at `path`; creates it if it is missing.
    ///
    /// - Throws: ``StateError/Code/storage``, naming the file.
    package init(path: String) throws(StateError) {
        let opened: Int32
        do throws(OpenFailure) {
            opened = try NamedFile.open(path, O_RDWR | O_CREAT | O_NOFOLLOW)
        } catch {
            throw StateError(.storage, error.sentence(path, "used"))
        }
        var read = [UInt8](repeating: 0, count: StoreStamp.byteCount)
        let count = pread(opened, &read, read.count, 0)
        // Created at its full size, so that later writes do not depend on free space.
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

    /// Reads the stamp at `path` without changing it; a missing one counts as empty.
    package init(reading path: String) {
        self.path = path
        descriptor = (try? NamedFile.open(path, O_RDONLY | O_NOFOLLOW)) ?? -1
        var read = [UInt8](repeating: 0, count: StoreStamp.byteCount)
        if descriptor >= 0 { pread(descriptor, &read, read.count, 0) }
        bytes = read
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The newest acknowledged commit.
    package var acknowledged: AcknowledgedCommit {
        get {
            let start = StoreStamp.acknowledgedOffset
            return AcknowledgedCommit(Array(bytes[start..<start + AcknowledgedCommit.byteCount]))
        }
        set {
            let start = StoreStamp.acknowledgedOffset
            // Without an array, because every commit runs this.
            withUnsafeBytes(of: newValue.words) { words in
                bytes.withUnsafeMutableBytes { bytes in
                    let room = bytes[start..<start + words.count]
                    UnsafeMutableRawBufferPointer(rebasing: room).copyMemory(from: words)
                }
                // If the write fails, an older one remains, as after a power failure.
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

    /// Whether no store was ever stamped here.
    var isAbsent: Bool { record == .absent }

    /// Why a database of this generation, at this revision, is not the last known one; nil if it
    /// is.
    func objection(toGeneration generation: UInt64?, revision: Int64) -> String? {
        let acknowledged = acknowledged.revision
        guard revision >= acknowledged else {
            return
                "it ends at revision \(revision), but \(path) records revision "
                + "\(acknowledged) as acknowledged"
        }
        switch record {
        case .absent: return generation == nil ? nil : "\(path) is missing or empty"
        case .damaged: return "\(path) is damaged"
        case .known(let current, let previous):
            guard [current, previous].contains(generation ?? 0) else {
                return "\(path) belongs to another store"
            }
            return hasAttribute(of: current, previous)
                ? nil : "the attributes of \(path) belong to another store"
        }
    }

    /// Whether a database of this generation is the last known one.
    func isOf(generation: UInt64?) -> Bool {
        guard let generation, case .known(let current, let previous) = record else { return false }
        return [current, previous].contains(generation) && hasAttribute(of: current, previous)
    }

    /// Whether a copy of a store can have this stamp with a database of this generation; also true
    /// if either is unknown.
    package func mayBeOf(generation: UInt64?) -> Bool {
        guard let generation, case .known(let current, let previous) = record else { return true }
        return [current, previous].contains(generation)
    }

    private func hasAttribute(of current: UInt64, _ previous: UInt64) -> Bool {
        attribute.map { $0 == current || $0 == previous } ?? true
    }

    /// Records a new generation beside the database's present one.
    ///
    /// The caller writes it to the database, then calls ``settle(_:)``.
    ///
    /// Until then there is no attribute. An attribute of a generation that never reached the
    /// database would look like that of another store, once the next start has begun its own
    /// generation and is killed too.
    ///
    /// - Throws: ``StateError/Code/storage``, if it cannot be synced.
    func begin(after generation: UInt64?) throws(StateError) -> UInt64 {
        let next = UInt64.random(in: 1...UInt64.max)
        clinux_remove_attribute(descriptor, StoreStamp.attribute)
        try write(next, previous: generation ?? 0)
        return next
    }

    /// The database has the generation: from now on only this one is valid.
    func settle(_ generation: UInt64) throws(StateError) {
        try write(generation, previous: generation)
        var value = generation
        let size = MemoryLayout<UInt64>.size
        // On file systems without attributes there is only the record.
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
        guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count, clinux_sync(descriptor) == 0
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

/// The newest acknowledged commit and its place in the log: what ``StoreStamp`` records after each
/// commit.
///
/// In the stamp, in the machine's byte order:
///
/// ```
/// 0   the revision
/// 8   frames of the log up to the end of the commit   16  the salts of the last of them
/// 24  inode of the log                                32  its birth time
/// 40  CRC-32C of bytes 0 to 39
/// ```
///
/// The revision alone does not prove that the log is complete: a flipped bit may remove compaction
/// or metadata; and if its frames were already moved into the database, old pages of the log would
/// hide newer ones of the database. The number of frames detects both. It applies only to the log
/// with these salts, in the file that it was written to: a log that somebody put in its place
/// belongs to an older copy.
package struct AcknowledgedCommit: Hashable {
    package var revision: Int64 = 0
    /// The place of its end in the log, and the identity of that file; nil if unknown, and after a
    /// clean stop.
    package var log: Log?

    package struct Log: Hashable {
        package var position: LogPosition
        package var file: FileIdentity
    }

    /// The size in the stamp.
    static let byteCount = 48

    package init(revision: Int64 = 0, log: Log? = nil) {
        self.revision = revision
        self.log = log
    }

    /// Reads the bytes of a stamp.
    ///
    /// A damaged stamp counts as revision 0 without a log: that detects less, but is never wrong. A
    /// stamp of an older version has only the revision.
    package init(_ bytes: [UInt8]) {
        let words = stride(from: 0, to: 40, by: 8).map { bytes.word(at: $0) }
        let isOld = words[1...].allSatisfy { $0 == 0 } && bytes.word(at: 40) == 0
        let checksum = UInt32(truncatingIfNeeded: UInt64(littleEndian: bytes.word(at: 40)))
        let found = Int64(bitPattern: words[0])
        guard isOld || checksum.littleEndian == AcknowledgedCommit.checksum(of: bytes),
            (0..<1 << 53).contains(found)
        else { return }
        revision = found
        guard let frameCount = Int(exactly: words[1]), frameCount > 0 else { return }
        log = Log(
            position: LogPosition(frameCount: frameCount, salts: words[2]),
            file: FileIdentity(
                inode: Int64(bitPattern: words[3]),
                birthTime: Int64(bitPattern: words[4])
            )
        )
    }

    typealias Words = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

    /// The six words of the stamp, in its byte order.
    var words: Words {
        let fields = (
            UInt64(bitPattern: revision), UInt64(log?.position.frameCount ?? 0),
            log?.position.salts ?? 0, UInt64(bitPattern: log?.file.inode ?? 0),
            UInt64(bitPattern: log?.file.birthTime ?? 0)
        )
        let checksum = withUnsafeBytes(of: fields) {
            UInt64(clinux_crc32c(0, $0.baseAddress, $0.count)).littleEndian
        }
        return (fields.0, fields.1, fields.2, fields.3, fields.4, checksum)
    }

    private static func checksum(of bytes: [UInt8]) -> UInt32 { clinux_crc32c(0, bytes, 40) }
}
