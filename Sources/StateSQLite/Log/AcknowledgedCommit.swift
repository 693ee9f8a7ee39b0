import CLinux
import Glibc
import StateEngine

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

/// Checks whether a store has everything that its stamp records as acknowledged.
///
/// Runs before anything is written. The result applies only to the very files that were written
/// last: a replaced database or log, and a database of another generation, count as another store
/// (``StoreStamp/objection(toGeneration:revision:)``).
struct AcknowledgedCheck {
    private let location: StoreLocation
    /// The log that exists before SQLite opens the database and creates one.
    private let logFile: FileIdentity?
    /// Whether the header of the log is damaged, but all of its acknowledged frames are in the
    /// database.
    private let isMoved: Bool

    /// Must be made before the database is opened: closing a second descriptor of it would drop
    /// SQLite's locks.
    init(_ location: StoreLocation) {
        self.location = location
        logFile = FileIdentity(path: location.log)
        isMoved = MovedLog(location, StoreStamp(reading: location.stamp)).isMoved
    }

    /// What is missing of the acknowledged commits; nil if nothing is.
    ///
    /// - Parameters:
    ///   - metadata: `meta` of the store.
    ///   - stamp: Its stamp.
    ///   - revision: The store's last revision.
    ///   - readsLog: Whether to check the frames of the log, which nobody may write meanwhile.
    /// - Returns: A sentence with the newest revisions of the store and of the stamp.
    /// - Throws: ``StateError/Code/corrupt``, naming a row of `meta`; or SQLite's error.
    /// - Complexity: O(*n*) in the bytes of the log up to the last acknowledged commit.
    func finding(
        _ metadata: StoreMetadata,
        _ stamp: StoreStamp,
        revision: Int64,
        readsLog: Bool
    ) throws -> String? {
        let acknowledged = stamp.acknowledged
        guard let log = acknowledged.log, log.file == logFile else { return nil }
        let known = try metadata.identity()
        guard FileIdentity(path: location.database) == known else { return nil }
        let recorded = "\(stamp.path) records revision \(acknowledged.revision) as acknowledged"
        if readsLog, let finding = finding(in: log.position) {
            return "it ends at revision \(revision), but \(recorded): \(finding)"
        }
        guard revision < acknowledged.revision,
            stamp.isOf(generation: try metadata.generation())
        else { return nil }
        return "it ends at revision \(revision), but \(recorded)"
    }

    private func finding(in position: LogPosition) -> String? {
        let descriptor = open(location.log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // An empty log was truncated, or somebody moved all of it into the database: the revision
        // decides.
        guard let header = LogHeader(descriptor) else { return nil }
        guard header.isWhole || isMoved else {
            return "the header of \(location.log) is damaged"
        }
        // The log was restarted since, or was about to be: everything before is in the database.
        guard header.isWhole, header.salts == position.salts else { return nil }
        let count = header.wholeFrameCount(descriptor, upTo: position.frameCount)
        guard count < position.frameCount else { return nil }
        return
            "acknowledged frame \(count + 1) of \(position.frameCount) in \(location.log) "
            + "is damaged"
    }
}
