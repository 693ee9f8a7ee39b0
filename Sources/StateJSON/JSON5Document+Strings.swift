/// Names, words and strings.
extension JSON5Document {
    mutating func takeName() throws(Fault) -> String {
        if peek == "\"" || peek == "'" { return try takeString() }
        let start = place
        let name = takeWord()
        guard !name.isEmpty else { throw fault("expected a name", at: start) }
        guard JSON5Document.isName(name) else {
            throw fault("the name '\(name.prefix(64))' needs quotes", at: start)
        }
        return name
    }

    private static func isName(_ name: String) -> Bool {
        name.unicodeScalars.enumerated().allSatisfy { index, scalar in
            scalar == "_" || scalar == "$" || scalar.properties.isIDStart
                || index > 0 && scalar.properties.isIDContinue
        }
    }

    /// Takes everything before the next sign or space: a name without quotes, a number, `true`.
    mutating func takeWord() -> String {
        var word = String.UnicodeScalarView()
        while let scalar = peek, !JSON5Document.isSpace(scalar) {
            switch scalar {
            case ",", ":", "]", "}", "/": return String(word)
            default:
                word.append(scalar)
                advance()
            }
        }
        return String(word)
    }

    mutating func takeString() throws(Fault) -> String {
        let (quote, start) = (peek, place)
        advance()
        var string = String.UnicodeScalarView()
        while let scalar = peek, scalar != quote, scalar != "\n", scalar != "\r" {
            if scalar == "\\" {
                if let escaped = try takeEscape() { string.append(escaped) }
            } else {
                string.append(scalar)
                advance()
            }
        }
        guard peek == quote else { throw fault("this string has no closing quote", at: start) }
        advance()
        return String(string)
    }

    /// - Returns: The escaped character; nil for a line continuation.
    private mutating func takeEscape() throws(Fault) -> Unicode.Scalar? {
        let start = place
        advance()
        guard let escaped = peek else { return nil }
        advance()
        switch escaped {
        case "n": return "\n"
        case "t": return "\t"
        case "r": return "\r"
        case "b": return "\u{8}"
        case "f": return "\u{C}"
        case "v": return "\u{B}"
        case "x": return Unicode.Scalar(try takeHexadecimal(2, from: start))
        case "u": return try takeUnicode(from: start)
        case "\r":
            if peek == "\n" { advance() }
            return nil
        case "\n", "\u{2028}", "\u{2029}": return nil
        case "0" where !(peek?.properties.numericType == .decimal): return "\0"
        case "0"..."9": throw fault("'\\\(escaped)' is not an escape of JSON5", at: start)
        default: return escaped
        }
    }

    /// Four digits, or two escapes of four digits that make one character together.
    private mutating func takeUnicode(from start: Place) throws(Fault) -> Unicode.Scalar {
        let first = try takeHexadecimal(4, from: start)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard UTF16.isLeadSurrogate(UInt16(first)), isNext("\\", "u") else {
            throw fault("this escape is half of a surrogate pair", at: start)
        }
        advance()
        advance()
        let second = try takeHexadecimal(4, from: start)
        guard UTF16.isTrailSurrogate(UInt16(second)),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw fault("this escape is half of a surrogate pair", at: start) }
        return scalar
    }

    private mutating func takeHexadecimal(
        _ count: Int,
        from start: Place
    ) throws(Fault) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let scalar = peek, scalar.isASCII, let digit = Character(scalar).hexDigitValue
            else { throw fault("expected \(count) hexadecimal digits in this escape", at: start) }
            value = value << 4 | UInt32(digit)
            advance()
        }
        return value
    }
}
