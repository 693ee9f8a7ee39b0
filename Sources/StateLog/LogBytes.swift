import StateModel
import StateSystem

/// Writes the numbers and texts of a frame.
struct LogWriterBytes {
    private(set) var bytes: [UInt8] = []

    var count: Int { bytes.count }

    mutating func removeAll() { bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 20) }

    /// Has room for so many bytes more: without it, long texts could take twice their length.
    mutating func reserve(_ byteCount: Int) { bytes.reserveCapacity(bytes.count + byteCount) }

    mutating func append(_ byte: UInt8) { bytes.append(byte) }

    mutating func append(fixed value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Seven bits in a byte, the lowest first; the eighth says that more follow.
    mutating func append(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func append(_ value: Int) { append(UInt64(value)) }

    /// A number of either sign: small ones are short.
    mutating func append(signed value: Int64) {
        append(UInt64(bitPattern: value << 1 ^ value >> 63))
    }

    mutating func append(text: Bytes) {
        append(text.count)
        bytes.append(contentsOf: text)
    }
}

/// Reads them; nothing that a disk may return ends the process.
struct LogReaderBytes {
    private let bytes: Bytes
    private(set) var offset: Int

    init(_ bytes: Bytes, from offset: Int = 0) { (self.bytes, self.offset) = (bytes, offset) }

    var isAtEnd: Bool { offset == bytes.count }
    var left: Int { bytes.count - offset }

    mutating func byte() throws(LogDamage) -> UInt8 {
        guard offset < bytes.count else { throw LogDamage("ends too early") }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func fixed<Value: FixedWidthInteger>(_: Value.Type) throws(LogDamage) -> Value {
        guard left >= MemoryLayout<Value>.size else { throw LogDamage("ends too early") }
        defer { offset += MemoryLayout<Value>.size }
        return Value(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Value.self))
    }

    mutating func number() throws(LogDamage) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: 0 as UInt64, to: 64, by: 7) {
            let byte = try byte()
            guard shift < 63 || byte <= 1 else {
                throw LogDamage("has a number of more than 64 bits")
            }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw LogDamage("has a number of more than 64 bits")
    }

    /// A number of things that are there: each takes a byte at least.
    mutating func count() throws(LogDamage) -> Int {
        let value = try number()
        guard value <= UInt64(left) else { throw LogDamage("has more parts than bytes") }
        return Int(value)
    }

    /// A number that fits into 63 bits.
    mutating func positive() throws(LogDamage) -> Int64 {
        guard let value = Int64(exactly: try number()) else {
            throw LogDamage("has a number of more than 63 bits")
        }
        return value
    }

    mutating func signed() throws(LogDamage) -> Int64 {
        let value = try number()
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }

    mutating func text() throws(LogDamage) -> Bytes {
        let count = try count()
        defer { offset += count }
        return Bytes(rebasing: bytes[offset..<offset + count])
    }
}

/// Bytes that are not what was written.
package struct LogDamage: Error, Equatable {
    package let reason: String

    init(_ reason: String) { self.reason = reason }
}

extension Checksum {
    /// The checksum of a row or a frame that may lie only at one place of one life of a segment.
    static func crc32c(_ bytes: UnsafeRawBufferPointer, seed: [UInt64]) -> UInt32 {
        crc32c(bytes, after: seed.withUnsafeBytes { crc32c($0) })
    }
}

extension [UInt8] {
    /// Calls `body` with the bytes, which are borrowed.
    func withBytes<Value, Failure: Error>(
        _ body: (Bytes) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let result = withUnsafeBytes { bytes in
            Result { () throws(Failure) in try body(bytes) }
        }
        return try result.get()
    }
}
