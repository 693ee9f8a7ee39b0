/// Where in the text of a configuration each option stands.
///
/// The text was read by Foundation before, which says of no value where it was; so this needs no care for what is no JSON5. It also
/// finds members that stand twice, of which Foundation takes one without a word.
package struct OptionPlaces {
    /// A line and a column, counted from 1, in code points.
    package struct Place: Hashable, Sendable, CustomStringConvertible {
        package let line: Int
        package let column: Int

        package var description: String { "\(line):\(column)" }
    }

    private var places: [OptionPath: Place] = [:]
    /// The first member that stands twice.
    package private(set) var repeated: OptionPath?

    private let text: [Unicode.Scalar]
    private var index = 0
    private var line = 1
    private var lineStart = 0

    package init(_ text: String) {
        self.text = Array(text.unicodeScalars)
        if self.text.first == "\u{FEFF}" { index = 1 }
        skipSpace()
        places[OptionPath()] = place
        skipValue(at: OptionPath())
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
                advance()
                repeat {
                    advance()
                } while index + 1 < text.count
                    && !(text[index] == "*" && text[index + 1] == "/")
                for _ in 0..<min(2, text.count - index) { advance() }
            } else if scalar.properties.isWhitespace || scalar == "\u{FEFF}" {
                advance()
            } else {
                return
            }
        }
    }

    private mutating func skipValue(at path: OptionPath) {
        switch peek {
        case "{": skipObject(at: path)
        case "[": skipArray(at: path)
        case "\"", "'": _ = takeString()
        default: _ = takeWord()
        }
    }

    private mutating func skipObject(at path: OptionPath) {
        advance()
        skipSpace()
        while let scalar = peek, scalar != "}" {
            let start = place
            let isQuoted = scalar == "\"" || scalar == "'"
            let member = path.member(isQuoted ? takeString() : takeWord())
            if places.updateValue(start, forKey: member) != nil { repeated = repeated ?? member }
            skipSpace()
            // The colon.
            if peek != nil { advance() }
            skipSpace()
            skipValue(at: member)
            skipComma()
        }
        if peek != nil { advance() }
    }

    private mutating func skipArray(at path: OptionPath) {
        advance()
        skipSpace()
        var number = 0
        while let scalar = peek, scalar != "]" {
            places[path.element(number)] = place
            skipValue(at: path.element(number))
            number += 1
            skipComma()
        }
        if peek != nil { advance() }
    }

    private mutating func skipComma() {
        skipSpace()
        if peek == "," { advance() }
        skipSpace()
    }

    /// What stands up to the next sign: a name without quotes, a number, `true`.
    private mutating func takeWord() -> String {
        var word = String.UnicodeScalarView()
        let signs = Set(",:]}/ \t\r\n".unicodeScalars)
        while let scalar = peek, !signs.contains(scalar) {
            word.append(scalar)
            advance()
        }
        // Nothing that can stand here: the text is no JSON5.
        if word.isEmpty, peek != nil { advance() }
        return String(word)
    }

    private mutating func takeString() -> String {
        let quote = peek
        advance()
        var string = String.UnicodeScalarView()
        while let scalar = peek, scalar != quote {
            advance()
            guard scalar == "\\", let escaped = peek else {
                string.append(scalar)
                continue
            }
            advance()
            takeEscape(escaped, &string)
        }
        if peek != nil { advance() }
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
