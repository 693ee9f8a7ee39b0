/// A reply taken apart, where speed does not matter.
enum Reply {
    case null
    case text(String)
    case error(String)
    case number(Int)
    case bulk([UInt8])
    case array([Reply])

    /// Takes exactly one reply apart, as ``ReplyScanner`` measured it.
    init(_ bytes: UnsafeRawBufferPointer) throws(BenchError) {
        var position = 0
        self = try Reply.next(bytes, &position)
    }

    private static func next(
        _ bytes: UnsafeRawBufferPointer,
        _ position: inout Int
    ) throws(BenchError) -> Reply {
        guard let lineEnd = ReplyScanner.endOfLine(bytes, from: position) else {
            throw .failed("a reply ends early")
        }
        let start = position + 1
        let kind = bytes[position]
        position = lineEnd
        let line = String(decoding: bytes[start..<max(start, lineEnd - 2)], as: UTF8.self)
        switch kind {
        case UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "#"), UInt8(ascii: "("):
            return .text(line)
        case UInt8(ascii: "-"): return .error(line)
        case UInt8(ascii: "_"): return .null
        case UInt8(ascii: ":"): return .number(try ReplyScanner.number(bytes, start, lineEnd))
        case UInt8(ascii: "$"):
            let count = try ReplyScanner.number(bytes, start, lineEnd)
            guard count >= 0 else { return .null }
            position = lineEnd + count + 2
            return .bulk(Array(bytes[lineEnd..<lineEnd + count]))
        default:
            var count = try ReplyScanner.number(bytes, start, lineEnd)
            guard count >= 0 else { return .null }
            if kind == UInt8(ascii: "%") { count *= 2 }
            var elements: [Reply] = []
            for _ in 0..<count { elements.append(try next(bytes, &position)) }
            return .array(elements)
        }
    }

    /// What a map says of `name`; under RESP2 a map is a list of names and values in turn.
    subscript(_ name: String) -> Reply? {
        guard case .array(let elements) = self else { return nil }
        for index in stride(from: 0, to: elements.count - 1, by: 2)
        where elements[index].string == name { return elements[index + 1] }
        return nil
    }

    var string: String? {
        switch self {
        case .text(let text): text
        case .bulk(let bytes): String(decoding: bytes, as: UTF8.self)
        default: nil
        }
    }

    var integer: Int? {
        if case .number(let number) = self { number } else { string.flatMap { Int($0) } }
    }
}
