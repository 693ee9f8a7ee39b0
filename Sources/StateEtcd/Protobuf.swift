/// Writes the fields of a message of protocol buffers; fields with their default are left out.
///
/// https://protobuf.dev/programming-guides/encoding/
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ field: Int, _ number: Int64) {
        guard number != 0 else { return }
        append(UInt64(field) << 3)
        append(UInt64(bitPattern: number))
    }

    /// Writes a number although it may be the default.
    mutating func writePresent(_ field: Int, _ number: Int64) {
        append(UInt64(field) << 3)
        append(UInt64(bitPattern: number))
    }

    mutating func write(_ field: Int, _ flag: Bool) { write(field, flag ? 1 : 0) }

    mutating func write(_ field: Int, _ content: [UInt8]) {
        guard !content.isEmpty else { return }
        writeMessage(field, content)
    }

    /// Writes a message, which is also there if it is empty.
    mutating func writeMessage(_ field: Int, _ content: [UInt8]) {
        append(UInt64(field) << 3 | 2)
        append(UInt64(content.count))
        bytes += content
    }

    private mutating func append(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

/// A message that is not one of protocol buffers.
package struct MalformedMessage: Error {}

/// Reads the fields of a message, in their order; unknown ones are skipped by the caller.
struct ProtobufReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    enum Value {
        case number(UInt64)
        case bytes(ArraySlice<UInt8>)

        var number: Int64 {
            if case .number(let number) = self { .init(bitPattern: number) } else { 0 }
        }
        /// A number that etcd counts up from 0; sums of such numbers do not overflow.
        var revision: Int64 {
            get throws(MalformedMessage) {
                guard (0...1 << 61).contains(number) else { throw MalformedMessage() }
                return number
            }
        }
        var bytes: ArraySlice<UInt8> { if case .bytes(let bytes) = self { bytes } else { [] } }
    }

    /// The next field; nil at the end.
    mutating func next() throws(MalformedMessage) -> (field: Int, value: Value)? {
        guard !rest.isEmpty else { return nil }
        let tag = try number()
        guard tag >> 3 <= 0x1FFF_FFFF else { throw MalformedMessage() }
        let field = Int(tag >> 3)
        switch tag & 7 {
        case 0: return (field, .number(try number()))
        case 1: return (field, .bytes(try take(8)))
        case 2: return (field, .bytes(try take(try number())))
        case 5: return (field, .bytes(try take(4)))
        default: throw MalformedMessage()
        }
    }

    private mutating func number() throws(MalformedMessage) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = rest.popFirst() else { throw MalformedMessage() }
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return number }
        }
        throw MalformedMessage()
    }

    private mutating func take(_ count: UInt64) throws(MalformedMessage) -> ArraySlice<UInt8> {
        guard count <= UInt64(rest.count) else { throw MalformedMessage() }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }
}
