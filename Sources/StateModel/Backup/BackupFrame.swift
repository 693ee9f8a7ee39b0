import StateSystem

/// The file of a backup: what `STATE.BACKUP` sends, `statectl backup` stores and `stated --restore`
/// reads.
///
/// ```
/// file    "stated backup 1\n", then frames: one head, metadata, rows, one end
/// frame   kind       1 byte     h, m, r or e
///         number     4 bytes    0, 1, 2, …: a frame that is missing, repeated or moved is noticed
///         items      4 bytes    rows or metadata entries in the payload
///         length     4 bytes    bytes of the payload
///         payload
///         checksum   4 bytes    CRC-32C of everything from the kind to the payload
/// ```
///
/// Numbers are little-endian. The payload of the head and of the end are lines, `name value`; the head
/// has the number of keys, as the daemon counts them in memory; the end has the number of frames and
/// rows, and the checksum of all bytes before it. The rows are those of the history in order
/// (``BackupRow``).
package struct BackupFrame: Sendable {
    package enum Kind: UInt8, Sendable {
        case head = 0x68
        case metadata = 0x6D
        case rows = 0x72
        case end = 0x65
    }

    package let kind: Kind
    package let number: UInt32
    package let itemCount: Int
    package let payload: [UInt8]

    /// The first bytes of the file.
    package static let magic = Array("stated backup 1\n".utf8)
    /// What precedes the payload.
    static let headByteCount = 13
    /// The largest payload: a value of the largest limit, its key and its cause.
    static let payloadByteLimit = 1 << 30

    package init(kind: Kind, number: UInt32, itemCount: Int, payload: [UInt8]) {
        (self.kind, self.number) = (kind, number)
        (self.itemCount, self.payload) = (itemCount, payload)
    }

    /// The rows in whole frames, as the daemon sends them.
    package static func rowCount(of frames: [UInt8]) -> Int {
        var (start, count) = (frames.starts(with: magic) ? magic.count : 0, 0)
        while start + headByteCount <= frames.count {
            if frames[start] == Kind.rows.rawValue { count += Int(frames.number(at: start + 5)) }
            start += headByteCount + Int(frames.number(at: start + 9)) + 4
        }
        return count
    }

    /// The value of a name in a payload of lines; nil if it has none.
    package func text(_ name: String) -> String? {
        for line in String(decoding: payload, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2, parts[0] == name { return String(parts[1]) }
        }
        return nil
    }

    /// The same as a number.
    package func number(_ name: String) -> Int64? { text(name).flatMap { Int64($0) } }
}

/// Writes the frames of a backup, one after the other.
package struct BackupWriter: Sendable {
    private var frameCount: UInt32 = 0
    private var rowCount: Int64 = 0
    private var checksum: UInt32

    /// Begins a file; ``BackupFrame/magic`` comes first.
    package init() { checksum = crc32c(BackupFrame.magic) }

    /// A frame with a payload of items.
    package mutating func frame(
        _ kind: BackupFrame.Kind,
        itemCount: Int = 0,
        _ payload: [UInt8]
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(payload.count + BackupFrame.headByteCount + 4)
        bytes.append(kind.rawValue)
        bytes.append(littleEndian: frameCount)
        bytes.append(littleEndian: UInt32(itemCount))
        bytes.append(littleEndian: UInt32(payload.count))
        bytes += payload
        bytes.append(littleEndian: crc32c(bytes))
        frameCount += 1
        if kind == .rows { rowCount += Int64(itemCount) }
        checksum = crc32c(bytes, after: checksum)
        return bytes
    }

    /// A frame with a payload of lines.
    package mutating func frame(
        _ kind: BackupFrame.Kind,
        _ lines: [(name: String, value: String)]
    ) -> [UInt8] {
        frame(kind, Array(lines.map { "\($0.name) \($0.value)\n" }.joined().utf8))
    }

    /// The last frame; `lines` is what it says besides the sums.
    package mutating func end(_ lines: [(name: String, value: String)]) -> [UInt8] {
        let sums = [
            ("frames", "\(frameCount)"), ("rows", "\(rowCount)"), ("checksum", "\(checksum)"),
        ]
        return frame(.end, sums.map { (name: $0.0, value: $0.1) } + lines)
    }
}

/// The CRC-32C of bytes.
func crc32c(_ bytes: [UInt8], after checksum: UInt32 = 0) -> UInt32 {
    bytes.withUnsafeBytes { Checksum.crc32c($0, after: checksum) }
}

extension [UInt8] {
    /// The four bytes from an index on as a number.
    func number(at index: Int) -> UInt32 {
        self[index..<index + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Appends a number, the least byte first.
    package mutating func append(littleEndian number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}
