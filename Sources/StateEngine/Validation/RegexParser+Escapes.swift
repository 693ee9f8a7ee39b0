// What follows a `\`.

extension RegexParser {
    mutating func parseEscape(from start: Int) throws(Fault) -> RegexNode {
        switch peek {
        case "b":
            index += 1
            return .assertion(.wordBoundary)
        case "B":
            index += 1
            return .assertion(.noWordBoundary)
        case let digit? where ("1"..."9").contains(digit) || digit == "k":
            if isSyntaxOnly { return try parseBackReference() }
            throw fault("back-references are not supported", at: start)
        default: return .scalars(try parseClassEscape(from: start))
        }
    }

    /// Skips a number, or a name in `<>`; whether there is such a group is not checked.
    private mutating func parseBackReference() throws(Fault) -> RegexNode {
        if take("k") {
            guard take("<") else { throw fault("'<' is missing") }
            while let scalar = peek, scalar != ">" { _ = take(scalar) }
            guard take(">") else { throw fault("'>' is missing") }
        } else {
            _ = try parseCount()
        }
        return .empty
    }

    /// Parses what follows `\`, inside or outside of a class.
    mutating func parseClassEscape(from start: Int) throws(Fault) -> ScalarSet {
        guard let scalar = peek else { throw fault("'\\' ends the pattern", at: start) }
        index += 1
        switch scalar {
        case "d": return .digits
        case "D": return ScalarSet.digits.inverted
        case "w": return .wordScalars
        case "W": return ScalarSet.wordScalars.inverted
        case "s": return .spaces
        case "S": return ScalarSet.spaces.inverted
        case "p": return try parseProperty(from: start)
        case "P": return try parseProperty(from: start).inverted
        default:
            let value = try parseScalarEscape(scalar, from: start)
            return ScalarSet([value...value])
        }
    }

    /// Parses the braces of `\p{…}`.
    private mutating func parseProperty(from start: Int) throws(Fault) -> ScalarSet {
        var name = String.UnicodeScalarView()
        guard take("{") else { throw fault("'{' is missing") }
        while let scalar = peek, scalar != "}" {
            name.append(scalar)
            index += 1
        }
        guard take("}") else { throw fault("'}' is missing") }
        let text = String(name)
        // A table takes a while, and values should not.
        if isSyntaxOnly, UnicodeProperty.isKnown(text) { return ScalarSet([]) }
        guard !isSyntaxOnly, let set = UnicodeProperty.set(text) else {
            let help = "general categories, properties such as Alphabetic, and Script=NAME for "
            throw fault(
                "no property '\(text)' is known; known are \(help)"
                    + UnicodeScript.names.joined(separator: ", "),
                at: start
            )
        }
        return set
    }

    private mutating func parseScalarEscape(
        _ scalar: Unicode.Scalar,
        from start: Int
    ) throws(Fault) -> UInt32 {
        switch scalar {
        case "t": return 0x09
        case "n": return 0x0A
        case "v": return 0x0B
        case "f": return 0x0C
        case "r": return 0x0D
        case "0" where !(peek.map { ("0"..."9").contains($0) } ?? false): return 0
        case "x": return try parseHexadecimal(digitCount: 2)
        case "u": return try parseUnicodeEscape()
        case "c":
            guard let letter = peek, letter.properties.isAlphabetic, letter.isASCII else { break }
            index += 1
            return letter.value % 32
        default:
            if "^$\\.*+?()[]{}|/-".unicodeScalars.contains(scalar) { return scalar.value }
        }
        throw fault("'\\\(scalar)' is not an escape sequence", at: start)
    }

    private mutating func parseUnicodeEscape() throws(Fault) -> UInt32 {
        let start = index - 2
        if take("{") {
            var value: UInt32 = 0
            repeat {
                value = value << 4 | (try parseHexadecimal(digitCount: 1))
                guard value <= 0x10FFFF else {
                    throw fault("not a code point (above U+10FFFF)", at: start)
                }
            } while peek != "}"
            index += 1
            return value
        }
        let first = try parseHexadecimal(digitCount: 4)
        guard (0xD800...0xDBFF).contains(first), peek == "\\", index + 1 < scalars.count,
            scalars[index + 1] == "u"
        else { return first }
        index += 2
        let second = try parseHexadecimal(digitCount: 4)
        guard (0xDC00...0xDFFF).contains(second) else {
            throw fault("half of a surrogate pair", at: start)
        }
        return 0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)
    }

    private mutating func parseHexadecimal(digitCount: Int) throws(Fault) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<digitCount {
            guard let scalar = peek, let digit = Character(scalar).hexDigitValue, scalar.isASCII
            else { throw fault("a hexadecimal digit is missing") }
            value = value << 4 | UInt32(digit)
            index += 1
        }
        return value
    }
}
