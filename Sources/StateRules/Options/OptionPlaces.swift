package import StateContainers

/// Where in the text of a configuration each option stands.
///
/// Foundation, which reads the text, says of no value where it was, nor where a text ceases to be JSON5; and of two members with one
/// name it takes one without a word. All three are found here. https://spec.json5.org
package struct OptionPlaces {
    /// A line and a column, counted from 1, in code points.
    package struct Place: Hashable, Sendable, CustomStringConvertible {
        package let line: Int
        package let column: Int

        package var description: String { "\(line):\(column)" }
    }

    private var places: [OptionPath: Place] = [:]
    /// The numbers of JSON, as they are written.
    private var numbers: [OptionPath: String] = [:]
    /// The first member that stands twice.
    package private(set) var repeated: OptionPath?
    /// Where the text ceases to be JSON5, and why.
    package private(set) var fault: (place: Place, message: String)?

    /// Arrays and objects may be nested so deep: what reads the text goes down with them.
    package static let depthLimit = 200
    private let text: [Unicode.Scalar]
    private var depth = 0
    private var index = 0
    private var line = 1
    private var lineStart = 0

    package init(_ text: String) {
        self.text = Array(text.unicodeScalars)
        if self.text.first == "\u{FEFF}" { index = 1 }
        skipSpace()
        places[OptionPath()] = place
        skipValue(at: OptionPath())
        skipSpace()
        if peek != nil { stop("something follows the configuration") }
    }

    /// Nothing that comes later means anything.
    private mutating func stop(_ message: String, at place: Place? = nil) {
        if fault == nil { fault = (place ?? self.place, message) }
        index = text.count
    }

    /// Where an option stands, or, for one that is missing, what it is missing in.
    package func place(of path: OptionPath) -> Place? {
        var path = path
        while true {
            if let place = places[path] { return place }
            guard let parent = path.parent else { return nil }
            path = parent
        }
    }

    /// What was read, with the numbers that are rounded there as they are written: a Double takes 2^53 + 1 for 2^53, a Decimal 38 digits.
    package func exact(_ value: JSONValue, at path: OptionPath = OptionPath()) -> JSONValue {
        switch value {
        case .number(let rounded):
            guard let written = numbers[path], let number = ExactNumber(written),
                ExactNumber(rounded)?.order(to: number) != 0
            else { return value }
            return .number(written)
        case .array(let elements):
            return .array(elements.enumerated().map { exact($1, at: path.element($0)) })
        case .object(let members):
            return .object(
                Dictionary(
                    uniqueKeysWithValues: members.map { ($0, exact($1, at: path.member($0))) }
                )
            )
        case .null, .bool, .string: return value
        }
    }

    private var place: Place { Place(line: line, column: index - lineStart + 1) }

    private var peek: Unicode.Scalar? { index < text.count ? text[index] : nil }

    private mutating func advance() {
        let scalar = text[index]
        index += 1
        let isEnd =
            scalar == "\n" || scalar == "\u{2028}" || scalar == "\u{2029}"
            || scalar == "\r" && peek != "\n"
        if isEnd { (line, lineStart) = (line + 1, index) }
    }

    private mutating func skipSpace() {
        while let scalar = peek {
            if scalar == "/", index + 1 < text.count, text[index + 1] == "/" {
                while let next = peek, next != "\n", next != "\r" { advance() }
            } else if scalar == "/", index + 1 < text.count, text[index + 1] == "*" {
                skipComment()
            } else if scalar.properties.isWhitespace || scalar == "\u{FEFF}" {
                advance()
            } else {
                return
            }
        }
    }

    private mutating func skipComment() {
        let start = place
        advance()
        advance()
        while index + 1 < text.count, !(text[index] == "*" && text[index + 1] == "/") { advance() }
        guard index + 1 < text.count else { return stop("a comment has no end", at: start) }
        advance()
        advance()
    }

    private mutating func skipValue(at path: OptionPath) {
        let start = place
        switch peek {
        case "{", "[":
            guard depth < OptionPlaces.depthLimit else {
                return stop("nested deeper than \(OptionPlaces.depthLimit)")
            }
            depth += 1
            peek == "{" ? skipObject(at: path) : skipArray(at: path)
            depth -= 1
        case "\"", "'": _ = takeString()
        default:
            let word = takeWord()
            if word.isEmpty { return stop("a value is missing", at: start) }
            if !OptionPlaces.isValue(word) {
                stop("'\(word)' is no value; a text stands in quotes", at: start)
            }
            if ExactNumber(word) != nil { numbers[path] = word }
        }
    }

    private static func isValue(_ word: String) -> Bool {
        if ["true", "false", "null"].contains(word) { return true }
        var number = word[...]
        if number.first == "-" || number.first == "+" { number.removeFirst() }
        if ["Infinity", "NaN"].contains(number) { return true }
        if number.hasPrefix("0x") || number.hasPrefix("0X") {
            let digits = number.dropFirst(2)
            return !digits.isEmpty && digits.allSatisfy(\.isHexDigit)
        }
        let isPadded = number.hasPrefix("0") && number.dropFirst().first?.isNumber ?? false
        let first = number.first
        return !isPadded && (first?.isNumber ?? false || first == ".")
            && Double(padded(number)) != nil
    }

    /// With a digit on both sides of its point, as Double reads it.
    private static func padded(_ number: Substring) -> String {
        let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return String(number) }
        let isBare = parts[1].isEmpty || parts[1].first == "e" || parts[1].first == "E"
        guard !(parts[0].isEmpty && isBare) else { return "" }
        return (parts[0].isEmpty ? "0" : parts[0]) + "." + (isBare ? "0" : "") + parts[1]
    }

    private mutating func skipObject(at path: OptionPath) {
        advance()
        skipSpace()
        while let scalar = peek, scalar != "}" {
            let start = place
            let isQuoted = scalar == "\"" || scalar == "'"
            let name = isQuoted ? takeString() : takeWord()
            if name.isEmpty, !isQuoted { return stop("a name is missing", at: start) }
            if !isQuoted, !OptionPlaces.isName(name) {
                return stop("the name '\(name)' needs quotes", at: start)
            }
            let member = path.member(name)
            if places.updateValue(start, forKey: member) != nil { repeated = repeated ?? member }
            skipSpace()
            guard peek == ":" else { return stop("':' is missing behind \(name)") }
            advance()
            skipSpace()
            skipValue(at: member)
            skipComma(before: "}")
        }
        end(with: "}")
    }

    private static func isName(_ name: String) -> Bool {
        name.unicodeScalars.enumerated().allSatisfy { index, scalar in
            scalar == "_" || scalar == "$" || scalar == "\\" || scalar.properties.isIDStart
                || index > 0 && scalar.properties.isIDContinue
        }
    }

    private mutating func skipArray(at path: OptionPath) {
        advance()
        skipSpace()
        var number = 0
        while let scalar = peek, scalar != "]" {
            places[path.element(number)] = place
            skipValue(at: path.element(number))
            number += 1
            skipComma(before: "]")
        }
        end(with: "]")
    }

    private mutating func skipComma(before end: Unicode.Scalar) {
        skipSpace()
        if peek == "," {
            advance()
        } else if let scalar = peek, scalar != end {
            stop("',' or '\(end)' is missing")
        }
        skipSpace()
    }

    private mutating func end(with scalar: Unicode.Scalar) {
        guard peek == scalar else { return stop("'\(scalar)' is missing") }
        advance()
    }

    /// What stands up to the next sign: a name without quotes, a number, `true`.
    private mutating func takeWord() -> String {
        var word = String.UnicodeScalarView()
        let signs = Set(",:]}/ \t\r\n".unicodeScalars)
        while let scalar = peek, !signs.contains(scalar) {
            word.append(scalar)
            advance()
        }
        return String(word)
    }

    private mutating func takeString() -> String {
        let (quote, start) = (peek, place)
        advance()
        var string = String.UnicodeScalarView()
        while let scalar = peek, scalar != quote, scalar != "\n", scalar != "\r" {
            advance()
            guard scalar == "\\", let escaped = peek else {
                string.append(scalar)
                continue
            }
            advance()
            takeEscape(escaped, &string)
        }
        if peek == quote { advance() } else { stop("a text has no end", at: start) }
        return String(string)
    }

    private mutating func takeEscape(
        _ escaped: Unicode.Scalar,
        _ string: inout String.UnicodeScalarView
    ) {
        switch escaped {
        case "n": string.append("\n")
        case "t": string.append("\t")
        case "r": string.append("\r")
        case "b": string.append("\u{8}")
        case "f": string.append("\u{C}")
        case "v": string.append("\u{B}")
        case "0": string.append("\0")
        case "x": takeHexadecimal(2, &string)
        case "u": takeHexadecimal(4, &string)
        case "\n", "\u{2028}", "\u{2029}": break
        case "\r": if peek == "\n" { advance() }
        default: string.append(escaped)
        }
    }

    private mutating func takeHexadecimal(
        _ count: Int,
        _ string: inout String.UnicodeScalarView
    ) {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let scalar = peek, let digit = Character(scalar).hexDigitValue else { return }
            value = value << 4 | UInt32(digit)
            advance()
        }
        string.append(Unicode.Scalar(value) ?? "\u{FFFD}")
    }
}
