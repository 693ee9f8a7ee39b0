import StateModel

/// Names, words and strings.
extension JSON5Document {
    /// The name of a member of `node`; nil after a fault, if no name is there.
    mutating func takeName(of node: Int) -> String? {
        if peek == UInt8(ascii: "\"") || peek == UInt8(ascii: "'") { return takeString(at: node) }
        let start = index
        let word = takeWord()
        guard !word.isEmpty else {
            if peek == UInt8(ascii: ",") {
                note("expected a name")
            } else {
                stop("expected a name")
            }
            return nil
        }
        if word.utf8.allSatisfy(JSON5Document.isPlain), word.utf8.first.map({ $0 > 0x39 }) ?? false
        {
            return word
        }
        guard let name = JSON5Document.identifier(word) else {
            note("the name '\(word.prefix(64))' needs quotes", at: start)
            return word
        }
        return name
    }

    /// An identifier of ECMAScript 5.1 with its escapes resolved; nil if `word` is none.
    ///
    /// https://262.ecma-international.org/5.1/#sec-7.6
    private static func identifier(_ word: String) -> String? {
        var name = String.UnicodeScalarView()
        var rest = word.unicodeScalars[...]
        while var scalar = rest.popFirst() {
            if scalar == "\\" {
                guard rest.popFirst() == "u", rest.count >= 4,
                    rest.prefix(4).allSatisfy({ $0.isASCII && $0.properties.isASCIIHexDigit }),
                    let value = UInt32(String(rest.prefix(4)), radix: 16),
                    let escaped = Unicode.Scalar(value)
                else { return nil }
                scalar = escaped
                rest.removeFirst(4)
            }
            guard isLetter(scalar) || !name.isEmpty && isPart(scalar) else { return nil }
            name.append(scalar)
        }
        return String(name)
    }

    /// Whether it is an ASCII letter or digit, `$` or `_`.
    private static func isPlain(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || byte == 0x24 || byte == 0x5F
    }

    private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
        if scalar == "$" || scalar == "_" { return true }
        return switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .letterNumber:
            true
        default: false
        }
    }

    private static func isPart(_ scalar: Unicode.Scalar) -> Bool {
        if scalar == "\u{200C}" || scalar == "\u{200D}" { return true }
        return switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .decimalNumber, .connectorPunctuation: true
        default: false
        }
    }

    /// Takes everything before the next sign or space: a name without quotes, a number, `true`.
    mutating func takeWord() -> String {
        let start = index
        walk: while index < text.count {
            switch text[index] {
            case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "]"), UInt8(ascii: "}"),
                UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: "/"), UInt8(ascii: "\""),
                UInt8(ascii: "'"):
                break walk
            default:
                guard spaceLength(at: index) == 0 else { break walk }
                index += 1
            }
        }
        return String(decoding: text[start..<index], as: UTF8.self)
    }

    /// The scalar at `offset`, and its length.
    func scalar(at offset: Int) -> (scalar: Unicode.Scalar, length: Int) {
        var source = text[offset..<min(offset + 4, text.count)].makeIterator()
        var parser = Unicode.UTF8.ForwardParser()
        guard case .valid(let encoded) = parser.parseScalar(from: &source) else {
            return ("\u{FFFD}", 1)
        }
        return (Unicode.UTF8.decode(encoded), encoded.count)
    }

    /// The length of the space at `offset`; 0 if there is none.
    func spaceLength(at offset: Int) -> Int {
        guard offset < text.count else { return 0 }
        switch text[offset] {
        case 0x09...0x0D, 0x20: return 1
        case 0..<0xC2: return 0
        default:
            let (scalar, length) = scalar(at: offset)
            return JSON5Document.isSpace(scalar) ? length : 0
        }
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\u{FEFF}", "\u{2028}", "\u{2029}": true
        default: scalar.properties.generalCategory == .spaceSeparator
        }
    }

    // MARK: Strings

    mutating func takeString(at node: Int) -> String {
        let (quote, start) = (text[index], index)
        index += 1
        let first = index
        var bytes: [UInt8]?
        var wrong: (offset: Int, message: String)?
        var plain = index
        while index < text.count, text[index] != quote, text[index] != 0x0A, text[index] != 0x0D {
            guard text[index] == UInt8(ascii: "\\") else {
                index += 1
                continue
            }
            bytes = (bytes ?? []) + text[plain..<index]
            let escape = index
            switch takeEscape() {
            case .success(let scalar?): bytes?.append(contentsOf: Array(String(scalar).utf8))
            case .success(nil): break
            case .failure(let fault): wrong = wrong ?? (escape, fault.message)
            }
            plain = index
        }
        guard peek == quote else {
            stop("this string has no closing quote", at: start)
            return ""
        }
        let string =
            bytes.map { String(decoding: $0 + text[plain..<index], as: UTF8.self) }
            ?? String(decoding: text[plain..<index], as: UTF8.self)
        if let wrong {
            note(
                wrong.message + advice(text[first..<index], quote, node),
                in: node,
                at: wrong.offset
            )
        }
        index += 1
        return string
    }

    private struct EscapeFault: Error { let message: String }

    /// - Returns: The escaped character; nil for a line continuation.
    private mutating func takeEscape() -> Result<Unicode.Scalar?, EscapeFault> {
        index += 1
        guard index < text.count else { return .success(nil) }
        let (escaped, length) = scalar(at: index)
        index += length
        switch escaped {
        case "n": return .success("\n")
        case "t": return .success("\t")
        case "r": return .success("\r")
        case "b": return .success("\u{8}")
        case "f": return .success("\u{C}")
        case "v": return .success("\u{B}")
        case "x": return takeHexadecimal(2).map { Unicode.Scalar($0) }
        case "u": return takeUnicode()
        case "\r":
            if peek == 0x0A { index += 1 }
            return .success(nil)
        case "\n", "\u{2028}", "\u{2029}": return .success(nil)
        case "0" where !(peek.map { $0 &- 0x30 < 10 } ?? false): return .success("\0")
        case "\"", "'", "\\", "/": return .success(escaped)
        default:
            let shown = escaped.misleads ? "\\" : "\\\(escaped)"
            return .failure(EscapeFault(message: "'\(shown)' is not an escape"))
        }
    }

    /// Four digits, or two escapes of four digits that make one character together.
    private mutating func takeUnicode() -> Result<Unicode.Scalar?, EscapeFault> {
        let half = EscapeFault(message: "this escape is half of a surrogate pair")
        return takeHexadecimal(4).flatMap { first in
            if let scalar = Unicode.Scalar(first) { return .success(scalar) }
            guard UTF16.isLeadSurrogate(UInt16(first)),
                isNext(UInt8(ascii: "\\"), UInt8(ascii: "u"))
            else { return .failure(half) }
            index += 2
            return takeHexadecimal(4).flatMap { second in
                guard UTF16.isTrailSurrogate(UInt16(second)) else { return .failure(half) }
                let value = 0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)
                return .success(Unicode.Scalar(value))
            }
        }
    }

    private mutating func takeHexadecimal(_ count: Int) -> Result<UInt32, EscapeFault> {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let byte = peek, byte < 0x80,
                let digit = Character(Unicode.Scalar(byte)).hexDigitValue
            else {
                return .failure(
                    EscapeFault(message: "expected \(count) hexadecimal digits in this escape")
                )
            }
            value = value << 4 | UInt32(digit)
            index += 1
        }
        return .success(value)
    }

    /// How to write a string whose backslashes are meant as such, as in a pattern.
    private func advice(_ content: ArraySlice<UInt8>, _ quote: UInt8, _ node: Int) -> String {
        var isPattern = false
        if case .member("pattern")? = nodes[node].step { isPattern = true }
        if case .member("patternProperties")? = nodes[node].step { isPattern = true }
        guard isPattern else { return "; write a backslash of the text twice" }
        var doubled: [UInt8] = []
        var index = content.startIndex
        while index < content.endIndex {
            let next = index + 1 < content.endIndex ? content[index + 1] : 0
            let isQuoted = next == UInt8(ascii: "\\") || next == quote
            doubled.append(content[index])
            if content[index] == UInt8(ascii: "\\") {
                doubled.append(isQuoted ? next : UInt8(ascii: "\\"))
                index += isQuoted ? 1 : 0
            }
            index += 1
        }
        let sentence = "; in a pattern write the backslash twice"
        guard doubled.count <= 100, doubled.allSatisfy({ $0 >= 0x20 }) else { return sentence }
        let quotation = Unicode.Scalar(quote)
        return "\(sentence): \(quotation)\(String(decoding: doubled, as: UTF8.self))\(quotation)"
    }
}
