import StateEngine

/// What a value encoded itself as; arrays and objects are shared with the containers that still fill them.
enum EncodedValue {
    case null
    case bool(Bool)
    case integer(Int64)
    /// Any other number, in digits.
    case number(String)
    case string(String)
    case array(EncodedArray)
    case object(EncodedObject)
    /// What another encoder will have got in the end: a `superEncoder()`.
    case deferred(ValueEncoder)
}

final class EncodedArray {
    var elements: [EncodedValue] = []
}

/// The members as they came; of two with one name the later counts.
final class EncodedObject {
    typealias Member = (name: String, value: EncodedValue)

    var members: [Member] = []

    /// The members in byte order of their names, each once.
    var sorted: [Member] {
        // Most objects have few members, and a sort that is stable lets the later of two win.
        var sorted = members.sorted { Self.order($0.name, $1.name) < 0 }
        guard sorted.count > 1 else { return sorted }
        var last = 0
        for index in 1..<sorted.count {
            if Self.order(sorted[index].name, sorted[last].name) == 0 {
                sorted[last] = sorted[index]
            } else {
                last += 1
                if last != index { sorted[last] = sorted[index] }
            }
        }
        sorted.removeLast(sorted.count - last - 1)
        return sorted
    }

    /// Byte order, not that of characters: as Foundation's encoder on Linux.
    private static func order(_ left: String, _ right: String) -> Int {
        var (left, right) = (left, right)
        return left.withUTF8 { left in right.withUTF8 { Bytes(left).order(to: Bytes($0)) } }
    }

    /// The last member of that name.
    func member(_ name: String) -> EncodedValue? { members.last { $0.name == name }?.value }
}

extension EncodedValue {
    /// With what was deferred put in its place.
    var settled: EncodedValue {
        guard case .deferred(let encoder) = self else { return self }
        return (encoder.value ?? .object(EncodedObject())).settled
    }
}

/// Writes JSON with sorted names and without white space.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    /// Whether something was left out because it is nested too deep.
    private(set) var isTooDeep = false
    private var depth = 0

    mutating func append(_ value: EncodedValue) {
        switch value {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .integer(let value): bytes += String(value).utf8
        case .number(let digits): bytes += digits.utf8
        case .string(let text): appendString(text)
        case .deferred: append(value.settled)
        case .array(let array): append(array.elements, in: "[", "]") { $0.append($1) }
        case .object(let object):
            append(object.sorted, in: "{", "}") {
                $0.appendString($1.name)
                $0.bytes.append(UInt8(ascii: ":"))
                $0.append($1.value)
            }
        }
    }

    private mutating func append<Elements: Collection>(
        _ elements: Elements,
        in begin: Unicode.Scalar,
        _ end: Unicode.Scalar,
        each appendElement: (inout JSONWriter, Elements.Element) -> Void
    ) {
        depth += 1
        defer { depth -= 1 }
        guard depth <= JSONDocument.depthLimit else {
            isTooDeep = true
            return
        }
        bytes.append(UInt8(ascii: begin))
        var isFirst = true
        for element in elements {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            appendElement(&self, element)
        }
        bytes.append(UInt8(ascii: end))
    }

    /// Only `"`, `\` and control characters are escaped.
    private mutating func appendString(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { text in
            var plain = 0
            for (index, byte) in text.enumerated()
            where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                bytes += text[plain..<index]
                plain = index + 1
                appendEscape(byte)
            }
            bytes += text[plain...]
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func appendEscape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0..<0x20: bytes += "u00\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))".utf8
        default: bytes.append(byte)
        }
    }
}
