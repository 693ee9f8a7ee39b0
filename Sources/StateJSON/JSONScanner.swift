import StateModel

/// Reads JSON (RFC 8259) strictly: no comments, no trailing commas, no numbers that begin with 0 or
/// `+`.
package struct JSONScanner {
    let text: Bytes
    private(set) var tokens: [JSONToken] = []
    private var index = 0
    private var depth = 0
    private let depthLimit: Int

    init(text: Bytes, depthLimit: Int) {
        self.text = text
        self.depthLimit = depthLimit
        tokens.reserveCapacity(text.count / 8 + 1)
    }

    mutating func scanDocument() throws(JSONFault) {
        skipSpace()
        try scanValue()
        skipSpace()
        guard index == text.count else { throw fault("unexpected text after the value") }
    }

    private var peek: UInt8? { index < text.count ? text[index] : nil }

    private func fault(_ message: String) -> JSONFault {
        JSONFault(message: message, offset: index)
    }

    private mutating func skipSpace() {
        while index < text.count, Self.isSpace(text[index]) { index += 1 }
    }

    /// Space, tab, line feed, carriage return.
    @inlinable
    package static func isSpace(_ byte: UInt8) -> Bool {
        byte <= 0x20 && (byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D)
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        index += 1
        return true
    }

    private mutating func append(_ kind: JSONToken.Kind, from start: Int, to end: Int) {
        tokens.append(
            JSONToken(
                kind: kind,
                start: UInt32(truncatingIfNeeded: start),
                end: UInt32(truncatingIfNeeded: end),
                next: UInt32(truncatingIfNeeded: tokens.count + 1)
            )
        )
    }

    private mutating func scanValue() throws(JSONFault) {
        switch peek {
        case UInt8(ascii: "\""): try scanString()
        case UInt8(ascii: "{"): try scanAggregate(.object, closing: UInt8(ascii: "}"))
        case UInt8(ascii: "["): try scanAggregate(.array, closing: UInt8(ascii: "]"))
        case UInt8(ascii: "t"): try scanWord("true", .true)
        case UInt8(ascii: "f"): try scanWord("false", .false)
        case UInt8(ascii: "n"): try scanWord("null", .null)
        case nil: throw fault("expected a value")
        default: try scanNumber()
        }
    }

    private mutating func scanWord(_ word: StaticString, _ kind: JSONToken.Kind) throws(JSONFault) {
        let end = index + word.utf8CodeUnitCount
        let bytes = Bytes(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard end <= text.count, text.slice(index, end).isEqual(to: bytes) else {
            throw fault("expected a value of JSON")
        }
        append(kind, from: index, to: end)
        index = end
    }

    private mutating func scanAggregate(
        _ kind: JSONToken.Kind,
        closing end: UInt8
    ) throws(JSONFault) {
        depth += 1
        guard depth <= depthLimit else {
            var fault = fault("arrays and objects are nested deeper than \(depthLimit)")
            fault.isTooDeep = true
            throw fault
        }
        let place = tokens.count
        append(kind, from: index, to: 0)
        index += 1
        skipSpace()
        if !skip(end) {
            repeat {
                skipSpace()
                if kind == .object { try scanName() }
                try scanValue()
                tokens[place].end += 1
                skipSpace()
            } while skip(UInt8(ascii: ","))
            guard skip(end) else {
                throw fault("expected ',' or '\(Character(Unicode.Scalar(end)))'")
            }
        }
        tokens[place].next = UInt32(truncatingIfNeeded: tokens.count)
        depth -= 1
    }

    private mutating func scanName() throws(JSONFault) {
        guard peek == UInt8(ascii: "\"") else { throw fault("expected a name in '\"'") }
        try scanString()
        skipSpace()
        guard skip(UInt8(ascii: ":")) else { throw fault("expected ':'") }
        skipSpace()
    }

    private mutating func scanNumber() throws(JSONFault) {
        let start = index
        _ = skip(UInt8(ascii: "-"))
        if !skip(UInt8(ascii: "0")) { try skipDigits(orThrow: "expected a value of JSON") }
        if skip(UInt8(ascii: ".")) { try skipDigits(orThrow: "expected a digit") }
        if skip(UInt8(ascii: "e")) || skip(UInt8(ascii: "E")) {
            if !skip(UInt8(ascii: "+")) { _ = skip(UInt8(ascii: "-")) }
            try skipDigits(orThrow: "expected a digit")
        }
        append(.number, from: start, to: index)
    }

    private mutating func skipDigits(orThrow message: String) throws(JSONFault) {
        let start = index
        while index < text.count, text[index] &- 0x30 < 10 { index += 1 }
        guard index > start else { throw fault(message) }
    }

    private mutating func scanString() throws(JSONFault) {
        index += 1
        let start = index
        var (hasEscapes, isASCII) = (false, true)
        while index < text.count, text[index] != UInt8(ascii: "\"") {
            let byte = text[index]
            guard byte >= 0x20 else { throw fault("a string contains a control character") }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                _ = try Self.escape(in: text, at: &index)
            } else {
                if byte >= 0x80 { isASCII = false }
                index += 1
            }
        }
        guard index < text.count else { throw fault("a string has no closing quote") }
        guard isASCII || String(validating: text.slice(start, index), as: UTF8.self) != nil else {
            throw JSONFault(message: "a string is not UTF-8", offset: start)
        }
        append(hasEscapes ? .escapedString : .string, from: start, to: index)
        index += 1
    }

    /// The text of a string whose escapes were checked before.
    static func unescaped(_ text: Bytes, in range: Range<Int>) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var index = range.lowerBound
        while index < range.upperBound {
            if text[index] == UInt8(ascii: "\\"), let scalar = try? escape(in: text, at: &index) {
                bytes += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            } else {
                bytes.append(text[index])
                index += 1
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The character of the escape at `index`; moves `index` behind it.
    private static func escape(
        in text: Bytes,
        at index: inout Int
    ) throws(JSONFault) -> Unicode.Scalar {
        let start = index
        index += 2
        guard index <= text.count else {
            throw JSONFault(message: "a string has no closing quote", offset: start)
        }
        switch text[index - 1] {
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try scalar(in: text, at: &index)
        case let byte
        where byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "/"):
            return Unicode.Scalar(byte)
        default: throw JSONFault(message: "'\\' does not begin an escape of JSON", offset: start)
        }
    }

    /// The part after `\u`: one unit of UTF-16, or two that are a pair.
    private static func scalar(
        in text: Bytes,
        at index: inout Int
    ) throws(JSONFault) -> Unicode.Scalar {
        let start = index - 2
        let first = try unit(in: text, at: &index)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard UTF16.isLeadSurrogate(UInt16(first)), index + 1 < text.count,
            text[index] == UInt8(ascii: "\\"), text[index + 1] == UInt8(ascii: "u")
        else { throw JSONFault(message: "an escape is half of a surrogate pair", offset: start) }
        index += 2
        let second = try unit(in: text, at: &index)
        guard UTF16.isTrailSurrogate(UInt16(second)),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw JSONFault(message: "an escape is half of a surrogate pair", offset: start) }
        return scalar
    }

    private static func unit(in text: Bytes, at index: inout Int) throws(JSONFault) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard index < text.count,
                let digit = Character(Unicode.Scalar(text[index])).hexDigitValue
            else { throw JSONFault(message: "'\\u' needs four hexadecimal digits", offset: index) }
            unit = unit << 4 | UInt32(digit)
            index += 1
        }
        return unit
    }
}
