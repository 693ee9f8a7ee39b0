import StateEngine
import StateWire

/// A string as DUMP writes it, in the format of Redis's snapshots.
///
/// ```
/// 0                    the type: a string
/// length, bytes        or a number, or compressed bytes
/// version              2 bytes, the lowest first
/// CRC-64               8 bytes, the lowest first, of all before
/// ```
enum DumpedValue {
    /// The version of the format that Redis 7.0 writes.
    private static let version = 10
    /// Later ones keep the form of strings.
    private static let latestVersion = 64

    static func write(_ value: Bytes) -> [UInt8] {
        var dump: [UInt8] = [0]
        if let number = value.decimal.flatMap({ Int32(exactly: $0) }) {
            // As many bytes as it needs, the lowest first.
            let size = Int8(exactly: number) != nil ? 0 : Int16(exactly: number) != nil ? 1 : 2
            dump.append(0xC0 | UInt8(size))
            withUnsafeBytes(of: number.littleEndian) { dump += $0.prefix(1 << size) }
            return finish(dump)
        }
        switch value.count {
        case ..<64: dump.append(UInt8(value.count))
        case ..<16_384: dump += [0x40 | UInt8(value.count >> 8), UInt8(value.count & 0xFF)]
        default:
            dump.append(0x80)
            withUnsafeBytes(of: UInt32(value.count).bigEndian) { dump += Array($0) }
        }
        return finish(dump + value)
    }

    /// Appends the version and the checksum.
    private static func finish(_ dump: [UInt8]) -> [UInt8] {
        var dump = dump
        dump += [UInt8(version & 0xFF), UInt8(version >> 8)]
        withUnsafeBytes(of: dump.withUnsafeBytes { checksum(of: $0) }.littleEndian) {
            dump += Array($0)
        }
        return dump
    }

    /// - Throws: ``StateError/Code/err`` in the words of Redis, if the checksum or the version is
    ///   wrong or this is no string; ``StateError/Code/tooBig`` above `limit` bytes.
    static func read(_ dump: Bytes, limit: Int) throws(StateError) -> [UInt8] {
        let end = dump.count - 10
        guard end >= 2 else { throw wrongChecksum }
        let version = Int(dump[end]) | Int(dump[end + 1]) << 8
        let stored = dump.loadUnaligned(fromByteOffset: end + 2, as: UInt64.self)
        guard version <= latestVersion,
            stored == 0 || UInt64(littleEndian: stored) == checksum(of: dump.slice(0, end + 2))
        else { throw wrongChecksum }
        guard dump[0] == 0 else {
            throw StateError(.err, "Bad data format: only strings can be restored here")
        }
        var reader = Reader(bytes: dump.slice(1, end))
        guard let value = reader.string(limit: limit), reader.isAtEnd else {
            throw StateError(
                .err,
                "Bad data format: the string is damaged, or has more than \(limit) bytes "
                    + "(limits.valueBytes)"
            )
        }
        return value
    }

    private static let wrongChecksum = StateError(
        .err,
        "DUMP payload version or checksum are wrong"
    )

    /// CRC-64 with the polynomial of Jones, reflected, as Redis uses it.
    static func checksum(of bytes: Bytes) -> UInt64 {
        bytes.reduce(0) { sum, byte in
            table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] ^ sum >> 8
        }
    }

    private static let table: [UInt64] = (0..<256).map { byte in
        (0..<8).reduce(UInt64(byte)) { sum, _ in
            sum & 1 == 1 ? sum >> 1 ^ 0x95AC_9329_AC4B_C9B5 : sum >> 1
        }
    }

    /// Reads lengths and strings; nil if they are damaged.
    private struct Reader {
        let bytes: Bytes
        var index = 0

        init(bytes: Bytes) { self.bytes = bytes }

        var isAtEnd: Bool { index == bytes.count }

        mutating func take(_ count: Int) -> Bytes? {
            guard count >= 0, count <= bytes.count - index else { return nil }
            defer { index += count }
            return bytes.slice(index, index + count)
        }

        /// A number, the highest byte first.
        mutating func number(_ byteCount: Int) -> Int? {
            take(byteCount)?.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }.asCount
        }

        mutating func length() -> Int? {
            guard let first = number(1) else { return nil }
            switch first >> 6 {
            case 0: return first
            case 1: return number(1).map { (first & 0x3F) << 8 | $0 }
            case 2 where first == 0x80: return number(4)
            case 2 where first == 0x81: return number(8)
            default: return nil
            }
        }

        mutating func string(limit: Int) -> [UInt8]? {
            guard index < bytes.count else { return nil }
            guard bytes[index] >> 6 == 3 else {
                guard let count = length(), count <= limit else { return nil }
                return take(count).map { Array($0) }
            }
            let form = bytes[index] & 0x3F
            index += 1
            switch form {
            case 0, 1, 2:
                guard let raw = take(1 << Int(form)) else { return nil }
                let bits = raw.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                let shift = 64 - 8 * UInt64(raw.count)
                return Array(String(Int64(bitPattern: bits << shift) >> Int64(shift)).utf8)
            case 3:
                guard let packed = length(), let count = length(), count <= limit,
                    let source = take(packed)
                else { return nil }
                return DumpedValue.unpack(source, to: count)
            default: return nil
            }
        }
    }

    /// Unpacks LZF: runs of literal bytes, and references to bytes before.
    private static func unpack(_ source: Bytes, to count: Int) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(min(count, 64 * source.count))
        var index = 0
        while index < source.count {
            let control = Int(source[index])
            index += 1
            if control < 32 {
                guard index + control < source.count else { return nil }
                result += source[index...index + control]
                index += control + 1
                continue
            }
            var length = control >> 5
            if length == 7 {
                guard index < source.count else { return nil }
                length += Int(source[index])
                index += 1
            }
            guard index < source.count else { return nil }
            let distance = (control & 0x1F) << 8 | Int(source[index])
            index += 1
            var start = result.count - distance - 1
            guard start >= 0, result.count + length + 2 <= count else { return nil }
            for _ in 0..<length + 2 {
                result.append(result[start])
                start += 1
            }
        }
        return result.count == count ? result : nil
    }
}

extension UInt64 {
    fileprivate var asCount: Int? { Int(exactly: self) }
}
