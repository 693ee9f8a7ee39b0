import CLinux
import StatePlatform
import StateSystem

/// What the ``DeferralLog`` begins with.
///
/// In the machine's byte order:
///
/// ```
/// 0   "statlate"    8  the life of the store (``LogLife``)
/// 16  0 if something deferred is not here, else 1
/// 24  the identifier of the machine's start, padded with zeros (``BootIdentity``)
/// 72  where the first batch is, and in 4 bytes the checksum that it continues; 0: it is behind
///     the header, and continues that of a header with 1 at 16
/// 88  CRC-32C of bytes 0 to 87
/// ```
struct DeferralLogHeader: Equatable {
    static let byteCount = 96
    private static let magic: UInt64 = 0x6574_616C_7461_7473
    private static let longestBoot = 48

    /// Where the first batch is.
    struct First: Equatable {
        var place: Int
        /// The checksum of what was before it.
        var checksum: UInt32
    }

    let generation: UInt64
    let boot: [UInt8]
    /// Whether everything deferred is here.
    var isWhole = true
    /// The first batch, if it was moved; nil: it has always been behind the header.
    var moved: First?

    init(generation: UInt64, boot: [UInt8]) {
        self.generation = generation
        self.boot = Array(boot.prefix(DeferralLogHeader.longestBoot))
    }

    /// The header that a process of a generation and of the same start of the machine has written; nil
    /// if it is another one.
    init?(_ bytes: [UInt8], of generation: UInt64, _ boot: [UInt8]) {
        self.init(generation: generation, boot: boot)
        let (isWhole, place, checksum) = bytes.withUnsafeBytes { bytes in
            (
                bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self),
                bytes.loadUnaligned(fromByteOffset: 72, as: UInt64.self),
                bytes.loadUnaligned(fromByteOffset: 80, as: UInt32.self)
            )
        }
        self.isWhole = isWhole != 0
        if place != 0 { moved = First(place: Int(truncatingIfNeeded: place), checksum: checksum) }
        guard bytes == self.bytes else { return nil }
    }

    var first: First {
        if let moved { return moved }
        var whole = self
        whole.isWhole = true
        let checksum = whole.bytes.withUnsafeBytes {
            $0.load(fromByteOffset: 88, as: UInt32.self)
        }
        return First(place: DeferralLogHeader.byteCount, checksum: checksum)
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(word: DeferralLogHeader.magic)
        bytes.append(word: generation)
        bytes.append(word: isWhole ? 1 : 0 as UInt64)
        bytes += boot
        bytes += [UInt8](repeating: 0, count: DeferralLogHeader.longestBoot - boot.count)
        bytes.append(word: UInt64(moved?.place ?? 0))
        bytes.append(word: moved?.checksum ?? 0)
        bytes.append(word: 0 as UInt32)
        bytes.append(word: bytes.withUnsafeBytes { clinux_crc32c(0, $0.baseAddress, $0.count) })
        bytes.append(word: 0 as UInt32)
        return bytes
    }
}

/// The file of the ``DeferralLog``.
///
/// Each step leaves it such that the end of the process loses nothing.
struct DeferralLogFile {
    private let path: String
    private var descriptor: Int32 = -1
    /// What the header is to say, and what it says; nil if that is not known.
    private var header: DeferralLogHeader
    private var written: DeferralLogHeader?
    private(set) var end = DeferralLogHeader.byteCount
    /// What is being written; its memory is used again.
    var buffer: [UInt8] = []

    /// A longer file is cut once it is empty.
    private static let keptByteCount = 8 << 20

    init(path: String, boot: [UInt8]) {
        self.path = path
        header = DeferralLogHeader(generation: 0, boot: boot)
    }

    /// What the first batch continues, if it was never moved.
    private var firstSeed: UInt32 = 0
    /// What the first batch continues.
    var seed: UInt32 { header.moved?.checksum ?? firstSeed }

    /// Removes the file; the next one is of this generation.
    mutating func begin(_ generation: UInt64) {
        remove()
        header = DeferralLogHeader(generation: generation, boot: header.boot)
        firstSeed = header.first.checksum
    }

    mutating func remove() {
        close()
        unlink(path)
        written = nil
        end = DeferralLogHeader.byteCount
    }

    mutating func close() {
        if descriptor >= 0 { StatePlatform.close(descriptor) }
        descriptor = -1
    }

    mutating func open() {
        guard descriptor < 0 else { return }
        descriptor = (try? NamedFile.open(path, O_RDWR | O_CREAT | O_NOFOLLOW)) ?? -1
    }

    /// Whether the header says that something is missing.
    var saysPart: Bool { written?.isWhole == false }

    /// Writes the header, if it is to say something else.
    ///
    /// - Returns: Whether it says that.
    @discardableResult
    mutating func say(isWhole: Bool) -> Bool {
        header.isWhole = isWhole
        return writeHeader()
    }

    private mutating func writeHeader() -> Bool {
        guard written != header, descriptor >= 0 else { return written == header }
        // If it cannot be written, the disk takes nothing any more.
        written = write(header.bytes, at: 0) ? header : nil
        return written != nil
    }

    /// Appends what is in ``buffer``.
    ///
    /// - Returns: False if it is not there.
    mutating func append() -> Bool {
        open()
        guard write(buffer, at: end) else { return false }
        end += buffer.count
        return true
    }

    /// The next batch becomes the first.
    mutating func empty() {
        if end > DeferralLogFile.keptByteCount, descriptor >= 0 {
            ftruncate(descriptor, off_t(DeferralLogHeader.byteCount))
        }
        end = DeferralLogHeader.byteCount
        header.moved?.place = end
    }

    /// Moves the batches from `place` on to the front, where nothing is needed any more.
    ///
    /// - Parameters:
    ///   - place: More than half of the file.
    ///   - checksum: That of the batch before.
    /// - Returns: Whether they are there; else all is where it was.
    mutating func moveToFront(from place: Int, after checksum: UInt32) -> Bool {
        let count = end - place
        guard let bytes = readBytes(descriptor, count: count, at: place) else { return false }
        // Order matters: after each write, the header names a place where they are.
        header.moved = .init(place: place, checksum: checksum)
        guard writeHeader(), write(bytes, at: DeferralLogHeader.byteCount) else { return false }
        header.moved?.place = DeferralLogHeader.byteCount
        guard writeHeader() else {
            header.moved?.place = place
            return false
        }
        end = DeferralLogHeader.byteCount + count
        return true
    }

    private func write(_ bytes: [UInt8], at place: Int) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(
                    descriptor,
                    $0.baseAddress?.advanced(by: done),
                    $0.count - done,
                    off_t(place + done)
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
