package import StateModel

/// The version of the protocol that a connection uses.
package enum ProtocolVersion: Int, Sendable {
    case resp2 = 2
    case resp3 = 3
}

/// Replies and pushes, appended to a buffer.
extension ByteBuffer {
    package mutating func writeOK() { append("+OK\r\n") }

    package mutating func writeSimple(_ text: StaticString) {
        append("+")
        append(text)
        append("\r\n")
    }

    package mutating func writeInteger(_ number: Int64) {
        appendLine(UInt8(ascii: ":"), Int(number))
    }

    package mutating func writeBulk(_ bytes: Bytes) { appendBlock(UInt8(ascii: "$"), bytes) }

    package mutating func writeBulk(_ bytes: [UInt8]) { bytes.withUnsafeBytes { writeBulk($0) } }

    package mutating func writeBulk(_ text: StaticString) {
        writeBulk(Bytes(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    package mutating func writeBulk(_ text: String) {
        var text = text
        text.withUTF8 { writeBulk(Bytes($0)) }
    }

    package mutating func writeNull(_ version: ProtocolVersion) {
        if version == .resp3 { append("_\r\n") } else { append("$-1\r\n") }
    }

    /// The null of an array, which in RESP2 differs from the null of a string.
    package mutating func writeNullArray(_ version: ProtocolVersion) {
        if version == .resp3 { append("_\r\n") } else { append("*-1\r\n") }
    }

    package mutating func writeArray(_ count: Int) { appendLine(UInt8(ascii: "*"), count) }

    /// The header of a map; `count` pairs follow.
    ///
    /// RESP2 has no maps: the pairs are one flat array.
    package mutating func writeMap(_ count: Int, _ version: ProtocolVersion) {
        if version == .resp3 {
            appendLine(UInt8(ascii: "%"), count)
        } else {
            writeArray(count * 2)
        }
    }

    package mutating func writePush(_ count: Int) { appendLine(UInt8(ascii: ">"), count) }

    /// An error.
    ///
    /// Its message is escaped so that it cannot end the reply; see ``StateError/printable(_:)``.
    package mutating func writeError(_ error: StateError) {
        var text = error.description
        append("-")
        text.withUTF8 { append(Bytes($0)) }
        append("\r\n")
    }
}
