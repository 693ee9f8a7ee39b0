package import StateModel

/// A JSON object as the lines of an import have it: its strings are kept, whatever else is in it is
/// checked and passed over.
package struct JSONObject: Sendable {
    /// Why a text is no JSON object.
    package struct Fault: Error, Hashable, Sendable {
        /// Where reading stopped, from 0.
        package let offset: Int
        /// What is wrong there.
        package let message: String
    }

    /// The fields that are strings; of two with one name the last.
    package private(set) var strings: [String: [UInt8]] = [:]
    /// The names of all fields.
    package private(set) var names: Set<String> = []

    /// Reads a text that is one object and nothing else.
    ///
    /// - Throws: ``Fault``.
    package init(_ text: Bytes) throws(Fault) {
        var reader = Reader(text: text)
        reader.skipSpace()
        try reader.expect(UInt8(ascii: "{"))
        var isFirst = true
        while try reader.nextMember(closing: UInt8(ascii: "}"), &isFirst) {
            let name = String(decoding: try reader.string(), as: UTF8.self)
            reader.skipSpace()
            try reader.expect(UInt8(ascii: ":"))
            reader.skipSpace()
            names.insert(name)
            if reader.peek == UInt8(ascii: "\"") {
                strings[name] = try reader.string()
            } else {
                strings[name] = nil
                try reader.skipValue(depth: 1)
            }
        }
        reader.skipSpace()
        guard reader.peek == nil else { throw reader.fault("something follows the object") }
    }
}

/// Reads JSON (RFC 8259) from borrowed bytes.
private struct Reader {
    let text: Bytes
    var index = 0

    static let depthLimit = 64

    var peek: UInt8? { index < text.count ? text[index] : nil }

    func fault(_ message: String) -> JSONObject.Fault { .init(offset: index, message: message) }

    mutating func skipSpace() {
        while let byte = peek, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
    }

    mutating func expect(_ byte: UInt8) throws(JSONObject.Fault) {
        guard peek == byte else {
            throw fault("'\(String(UnicodeScalar(byte)))' is missing")
        }
        index += 1
    }

    /// Stands before the next member of an aggregate, or passes its end.
    mutating func nextMember(
        closing end: UInt8,
        _ isFirst: inout Bool
    ) throws(JSONObject.Fault) -> Bool {
        skipSpace()
        if peek == end {
            index += 1
            return false
        }
        if !isFirst { try expect(UInt8(ascii: ",")) }
        isFirst = false
        skipSpace()
        return true
    }

    mutating func skipValue(depth: Int) throws(JSONObject.Fault) {
        guard depth <= Self.depthLimit else { throw fault("the object is nested too deep") }
        switch peek {
        case UInt8(ascii: "\""): _ = try string()
        case UInt8(ascii: "["), UInt8(ascii: "{"): try skipAggregate(depth: depth)
        case UInt8(ascii: "t"): try skip(word: "true")
        case UInt8(ascii: "f"): try skip(word: "false")
        case UInt8(ascii: "n"): try skip(word: "null")
        default: try skipNumber()
        }
    }

    private mutating func skipAggregate(depth: Int) throws(JSONObject.Fault) {
        let isObject = peek == UInt8(ascii: "{")
        index += 1
        var isFirst = true
        while try nextMember(closing: UInt8(ascii: isObject ? "}" : "]"), &isFirst) {
            if isObject {
                _ = try string()
                skipSpace()
                try expect(UInt8(ascii: ":"))
                skipSpace()
            }
            try skipValue(depth: depth + 1)
        }
    }

    private mutating func skip(word: String) throws(JSONObject.Fault) {
        guard text[index...].starts(with: word.utf8) else { throw fault("no value") }
        index += word.utf8.count
    }

    private mutating func skipNumber() throws(JSONObject.Fault) {
        let begin = index
        while let byte = peek, "+-.eE0123456789".utf8.contains(byte) { index += 1 }
        guard Double(String(decoding: text[begin..<index], as: UTF8.self)) != nil else {
            index = begin
            throw fault("no value")
        }
    }

    mutating func string() throws(JSONObject.Fault) -> [UInt8] {
        try expect(UInt8(ascii: "\""))
        var bytes: [UInt8] = []
        while let byte = peek {
            if byte == UInt8(ascii: "\"") {
                index += 1
                return bytes
            }
            if byte == UInt8(ascii: "\\") {
                index += 1
                try appendEscape(to: &bytes)
                continue
            }
            let length = UTF8Sequence.length(in: text, at: index)
            guard length > 0 else { throw fault("a string is not UTF-8") }
            guard byte >= 0x20 else { throw fault("a control character stands in a string") }
            bytes += text[index..<index + length]
            index += length
        }
        throw fault("a string has no end")
    }

    private mutating func appendEscape(to bytes: inout [UInt8]) throws(JSONObject.Fault) {
        guard let letter = peek else { throw fault("a string has no end") }
        index += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(letter)
        case UInt8(ascii: "b"): bytes.append(0x08)
        case UInt8(ascii: "f"): bytes.append(0x0C)
        case UInt8(ascii: "n"): bytes.append(0x0A)
        case UInt8(ascii: "r"): bytes.append(0x0D)
        case UInt8(ascii: "t"): bytes.append(0x09)
        case UInt8(ascii: "u"): bytes += Array(String(try scalar()).utf8)
        default: throw fault("'\\' begins no escape of JSON")
        }
    }

    /// What follows `\u`: one unit of UTF-16, or two that are a pair.
    private mutating func scalar() throws(JSONObject.Fault) -> Unicode.Scalar {
        let first = try unit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        try expect(UInt8(ascii: "\\"))
        try expect(UInt8(ascii: "u"))
        let second = try unit()
        guard (0xD800...0xDBFF).contains(first), (0xDC00...0xDFFF).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw fault("half of a surrogate pair") }
        return scalar
    }

    private mutating func unit() throws(JSONObject.Fault) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek, let value = Hexadecimal.value(of: byte) else {
                throw fault("'\\u' needs four hexadecimal digits")
            }
            unit = unit << 4 | UInt32(value)
            index += 1
        }
        return unit
    }
}
