/// Reads a regular expression of ECMA 262 in its Unicode mode, without back-references and
/// look-around.
struct RegexParser {
    /// The problem, and the index of the code point where it is.
    struct Fault: Error {
        let message: String
        let offset: Int
    }

    private let scalars: [Unicode.Scalar]
    private var index = 0
    private var depth = 0

    /// The largest nesting depth of groups.
    private static let depthLimit = 100

    init(_ pattern: String) { scalars = Array(pattern.unicodeScalars) }

    mutating func parse() throws(Fault) -> RegexNode {
        let node = try parseAlternation()
        guard peek == nil else { throw fault("')' without '('") }
        return node
    }

    private var peek: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

    private func fault(_ message: String, at offset: Int? = nil) -> Fault {
        Fault(message: message, offset: offset ?? index)
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard peek == scalar else { return false }
        index += 1
        return true
    }

    private mutating func parseAlternation() throws(Fault) -> RegexNode {
        var choices = [try parseSequence()]
        while take("|") { choices.append(try parseSequence()) }
        return choices.count == 1 ? choices[0] : .alternation(choices)
    }

    private mutating func parseSequence() throws(Fault) -> RegexNode {
        var parts: [RegexNode] = []
        while let scalar = peek, scalar != "|", scalar != ")" {
            parts.append(try parseQuantified())
        }
        return parts.count == 1 ? parts[0] : .sequence(parts)
    }

    private mutating func parseQuantified() throws(Fault) -> RegexNode {
        let node = try parseAtom()
        guard let bounds = try parseQuantifier() else { return node }
        if case .assertion = node { throw fault("nothing to repeat", at: index - 1) }
        // A lazy quantifier changes only the extent of a match, not whether there is one.
        _ = take("?")
        if let next = peek, "*+?".unicodeScalars.contains(next) { throw fault("nothing to repeat") }
        return .repetition(node, minimum: bounds.minimum, maximum: bounds.maximum)
    }

    private mutating func parseQuantifier() throws(Fault) -> (minimum: Int, maximum: Int?)? {
        if take("*") { return (0, nil) }
        if take("+") { return (1, nil) }
        if take("?") { return (0, 1) }
        let start = index
        guard take("{") else { return nil }
        let minimum = try parseCount()
        let maximum = take(",") ? (peek == "}" ? nil : try parseCount()) : minimum
        guard take("}") else { throw fault("'}' is missing") }
        if let maximum, maximum < minimum {
            throw fault("the maximum is below the minimum", at: start)
        }
        return (minimum, maximum)
    }

    private mutating func parseCount() throws(Fault) -> Int {
        let start = index
        var count = 0
        while let scalar = peek, ("0"..."9").contains(scalar) {
            count = min(
                count * 10 + Int(scalar.value - 0x30),
                RegularExpression.instructionLimit + 1
            )
            index += 1
        }
        guard index > start else { throw fault("a count is missing") }
        return count
    }

    private mutating func parseAtom() throws(Fault) -> RegexNode {
        let start = index
        guard let scalar = peek else { return .empty }
        index += 1
        switch scalar {
        case "^": return .assertion(.start)
        case "$": return .assertion(.end)
        case ".": return .scalars(.withoutLineEnds)
        case "(": return try parseGroup(from: start)
        case "[": return .scalars(try parseClass(from: start))
        case "\\": return try parseEscape(from: start)
        case "*", "+", "?": throw fault("nothing to repeat", at: start)
        case "{", "}", "]": throw fault("'\(scalar)' needs a '\\' before it", at: start)
        default: return .scalars(ScalarSet([scalar.value...scalar.value]))
        }
    }

    private mutating func parseGroup(from start: Int) throws(Fault) -> RegexNode {
        depth += 1
        guard depth <= Self.depthLimit else {
            throw fault("groups are nested deeper than \(Self.depthLimit)", at: start)
        }
        if take("?") {
            let isNamed = take("<")
            if peek == "=" || peek == "!" {
                throw fault("look-\(isNamed ? "behind" : "ahead") is not supported", at: start)
            }
            if isNamed {
                while let scalar = peek, scalar != ">" { _ = take(scalar) }
                guard take(">") else { throw fault("'>' is missing") }
            } else if !take(":") {
                throw fault("unknown kind of group after '(?'", at: start)
            }
        }
        let node = try parseAlternation()
        guard take(")") else { throw fault("'(' without ')'", at: start) }
        depth -= 1
        return node
    }

    private mutating func parseEscape(from start: Int) throws(Fault) -> RegexNode {
        switch peek {
        case "b":
            index += 1
            return .assertion(.wordBoundary)
        case "B":
            index += 1
            return .assertion(.noWordBoundary)
        case let digit? where ("1"..."9").contains(digit) || digit == "k":
            throw fault("back-references are not supported", at: start)
        default: return .scalars(try parseClassEscape(from: start))
        }
    }

    /// Parses what follows `\`, inside or outside of a class.
    private mutating func parseClassEscape(from start: Int) throws(Fault) -> ScalarSet {
        guard let scalar = peek else { throw fault("'\\' ends the pattern", at: start) }
        index += 1
        switch scalar {
        case "d": return .digits
        case "D": return ScalarSet.digits.inverted
        case "w": return .wordScalars
        case "W": return ScalarSet.wordScalars.inverted
        case "s": return .spaces
        case "S": return ScalarSet.spaces.inverted
        default:
            let value = try parseScalarEscape(scalar, from: start)
            return ScalarSet([value...value])
        }
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

    private mutating func parseClass(from start: Int) throws(Fault) -> ScalarSet {
        let isInverted = take("^")
        var ranges: [ClosedRange<UInt32>] = []
        while !take("]") {
            guard peek != nil else { throw fault("'[' without ']'", at: start) }
            let here = index
            let low = try parseClassMember()
            guard peek == "-", index + 1 < scalars.count, scalars[index + 1] != "]" else {
                ranges += low.ranges
                continue
            }
            index += 1
            let high = try parseClassMember()
            guard let first = low.single, let last = high.single, first <= last else {
                throw fault("not a range", at: here)
            }
            ranges.append(first...last)
        }
        let set = ScalarSet(ranges)
        return isInverted ? set.inverted : set
    }

    private mutating func parseClassMember() throws(Fault) -> ScalarSet {
        let start = index
        guard let scalar = peek else { throw fault("']' is missing") }
        index += 1
        if scalar != "\\" { return ScalarSet([scalar.value...scalar.value]) }
        if take("b") { return ScalarSet([0x08...0x08]) }
        return try parseClassEscape(from: start)
    }
}

extension ScalarSet {
    /// The only code point.
    fileprivate var single: UInt32? {
        guard ranges.count == 1, ranges[0].count == 1 else { return nil }
        return ranges[0].lowerBound
    }
}
