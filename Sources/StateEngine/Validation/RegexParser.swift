/// Reads a regular expression of ECMA 262 in its Unicode mode, without back-references and
/// look-around.
struct RegexParser {
    /// The problem, and the index of the code point where it is.
    struct Fault: Error {
        let message: String
        let offset: Int
    }

    let scalars: [Unicode.Scalar]
    /// Whether only the syntax counts: then what cannot be searched for is no fault.
    let isSyntaxOnly: Bool
    var index = 0
    private var depth = 0

    /// The largest nesting depth of groups.
    private static let depthLimit = 100

    init(_ pattern: String, isSyntaxOnly: Bool = false) {
        scalars = Array(pattern.unicodeScalars)
        self.isSyntaxOnly = isSyntaxOnly
    }

    mutating func parse() throws(Fault) -> RegexNode {
        let node = try parseAlternation()
        guard peek == nil else { throw fault("')' without '('") }
        return node
    }

    var peek: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

    func fault(_ message: String, at offset: Int? = nil) -> Fault {
        Fault(message: message, offset: offset ?? index)
    }

    mutating func take(_ scalar: Unicode.Scalar) -> Bool {
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

    mutating func parseCount() throws(Fault) -> Int {
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
            if take("=") || take("!") {
                if isSyntaxOnly { return try parseGroupEnd(from: start) }
                throw fault("look-\(isNamed ? "behind" : "ahead") is not supported", at: start)
            }
            if isNamed {
                while let scalar = peek, scalar != ">" { _ = take(scalar) }
                guard take(">") else { throw fault("'>' is missing") }
            } else if !take(":") {
                throw fault("unknown kind of group after '(?'", at: start)
            }
        }
        return try parseGroupEnd(from: start)
    }

    private mutating func parseGroupEnd(from start: Int) throws(Fault) -> RegexNode {
        let node = try parseAlternation()
        guard take(")") else { throw fault("'(' without ')'", at: start) }
        depth -= 1
        return node
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
