import StateEngine
import StateSystem

/// What one process of the daemon leaves to the next one about its connections.
///
/// ```
/// head      "statedho", version, epoch, durable revision, number of the newest connection,
///           number of sessions, CRC-32C of these
/// session   length, CRC-32C, bytes
/// …
/// ```
///
/// Each session has its checksum, so that a damaged one costs one connection. The version is that of
/// the format, not of the daemon: an upgrade within it continues the connections.
struct HandoverRecord {
    var epoch: Epoch
    /// Everything up to this revision was delivered, except to watches that were behind.
    var durable: Int64
    /// The number of the newest connection.
    var lastNumber: Int
    /// Each session's bytes; nil for a damaged one.
    var sessions: [[UInt8]?] = []

    static let version: Int64 = 1
    private static let magic: Int64 = 0x6F68_6465_7461_7473
    /// More bytes are not handed over: what does not fit is ended as without a hand-over.
    static let byteLimit = 128 << 20

    var bytes: [UInt8] {
        var writer = RecordWriter()
        writer.write(HandoverRecord.magic)
        writer.write(HandoverRecord.version)
        writer.write(Int64(bitPattern: epoch.bits))
        writer.write(durable)
        writer.write(Int64(lastNumber))
        writer.write(Int64(sessions.count))
        writer.write(Int64(writer.bytes.withUnsafeBytes { Checksum.crc32c($0) }))
        for session in sessions {
            let session = session ?? []
            writer.write(Int64(session.count))
            writer.write(Int64(session.withUnsafeBytes { Checksum.crc32c($0) }))
            writer.write(bytes: session)
        }
        return writer.bytes
    }

    /// - Throws: if the head is damaged or of another version; what follows it may be damaged.
    init(_ bytes: [UInt8]) throws(DamagedRecord) {
        var reader = RecordReader(bytes)
        guard try reader.number() == HandoverRecord.magic,
            try reader.number() == HandoverRecord.version
        else { throw DamagedRecord() }
        let bits = UInt64(bitPattern: try reader.number())
        guard bits != 0 else { throw DamagedRecord() }
        epoch = Epoch(bits: bits)
        durable = try reader.number()
        lastNumber = try reader.number(in: 0...SessionRecord.lastNumber)
        let count = try reader.number(in: 0...Int64(bytes.count))
        let sum = reader.passed.withUnsafeBytes { Int64(Checksum.crc32c($0)) }
        guard try reader.number() == sum else { throw DamagedRecord() }
        for _ in 0..<count { sessions.append(HandoverRecord.session(&reader)) }
    }

    private static func session(_ reader: inout RecordReader) -> [UInt8]? {
        guard let length = try? reader.number(), let sum = try? reader.number(),
            let bytes = try? reader.bytes(length)
        else { return nil }
        return bytes.withUnsafeBytes { Int64(Checksum.crc32c($0)) } == sum ? bytes : nil
    }

    init(epoch: Epoch, durable: Int64, lastNumber: Int) {
        (self.epoch, self.durable, self.lastNumber) = (epoch, durable, lastNumber)
    }
}
