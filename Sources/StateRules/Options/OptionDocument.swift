package import StateContainers

/// A configuration in JSON5: what it says, and the line and column of each option.
///
/// Numbers keep the digits that are written, so none is rounded; whole numbers of up to 19 digits are written out, and a point has a
/// digit on both sides. https://spec.json5.org
package struct OptionDocument {
    /// A line and a column, counted from 1, in code points.
    package struct Place: Hashable, Sendable, CustomStringConvertible {
        package let line: Int
        package let column: Int

        package var description: String { "\(line):\(column)" }
    }

    /// A place where the text is not JSON5, and why.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        package let place: Place
        package let message: String

        package var description: String { "\(place): \(message)" }
    }

    /// What the text says; of two members with the same name, the last.
    package private(set) var value = JSONValue.null
    /// The first member that appears twice in its object.
    package private(set) var repeated: OptionPath?
    private var places: [OptionPath: Place] = [:]

    /// How deep arrays and objects may be nested, for the reader calls itself for each of them.
    package static let depthLimit = 200

    private let text: [Unicode.Scalar]
    private var depth = 0
    private var index = 0
    private var line = 1
    private var lineStart = 0

    /// Reads a text.
    ///
    /// - Complexity: O(*n*) in its length.
    package init(_ text: String) throws(Fault) {
        self.text = Array(text.unicodeScalars)
        if self.text.first == "\u{FEFF}" { index = 1 }
        try skipSpace()
        places[OptionPath()] = place
        value = try takeValue(at: OptionPath())
        try skipSpace()
        if peek != nil { throw fault("unexpected text after the configuration") }
    }

    /// Where an option is; for one that is missing, where the option that lacks it is.
    package func place(of path: OptionPath) -> Place? {
        var path = path
        while true {
            if let place = places[path] { return place }
            guard let parent = path.parent else { return nil }
            path = parent
        }
    }

    // MARK: Walking

    private var place: Place { Place(line: line, column: index - lineStart + 1) }

    private var peek: Unicode.Scalar? { index < text.count ? text[index] : nil }

    private func fault(_ message: String, at place: Place? = nil) -> Fault {
        Fault(place: place ?? self.place, message: message)
    }

    private static func endsLine(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\r" || scalar == "\u{2028}" || scalar == "\u{2029}"
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar == "\u{FEFF}"
    }

    private mutating func advance() {
        let scalar = text[index]
        index += 1
        guard OptionDocument.endsLine(scalar), !(scalar == "\r" && peek == "\n") else { return }
        (line, lineStart) = (line + 1, index)
    }

    private func isNext(_ first: Unicode.Scalar, _ second: Unicode.Scalar) -> Bool {
        index + 1 < text.count && text[index] == first && text[index + 1] == second
    }

    private mutating func skipSpace() throws(Fault) {
        while let scalar = peek {
            if isNext("/", "/") {
                while let next = peek, !OptionDocument.endsLine(next) { advance() }
            } else if isNext("/", "*") {
                try skipComment()
            } else if OptionDocument.isSpace(scalar) {
                advance()
            } else {
                return
            }
        }
    }

    private mutating func skipComment() throws(Fault) {
        let start = place
        advance()
        advance()
        while !isNext("*", "/") {
            guard peek != nil else { throw fault("this comment has no end", at: start) }
            advance()
        }
        advance()
        advance()
    }

    // MARK: Values

    private mutating func takeValue(at path: OptionPath) throws(Fault) -> JSONValue {
        switch peek {
        case "{":
            return try nested { (document) throws(Fault) in try document.takeObject(at: path) }
        case "[": return try nested { (document) throws(Fault) in try document.takeArray(at: path) }
        case "\"", "'": return .string(try takeString())
        default: return try takeScalar()
        }
    }

    private mutating func nested(
        _ body: (inout OptionDocument) throws(Fault) -> JSONValue
    ) throws(Fault) -> JSONValue {
        guard depth < OptionDocument.depthLimit else {
            throw fault("nested deeper than \(OptionDocument.depthLimit)")
        }
        depth += 1
        defer { depth -= 1 }
        return try body(&self)
    }

    private mutating func takeScalar() throws(Fault) -> JSONValue {
        let start = place
        let word = takeWord()
        switch word {
        case "": throw fault("expected a value", at: start)
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .null
        default:
            guard let digits = OptionNumber.digits(of: word) else {
                throw fault("unexpected '\(word.prefix(64))'; strings need quotes", at: start)
            }
            return .number(digits)
        }
    }

    private mutating func takeObject(at path: OptionPath) throws(Fault) -> JSONValue {
        var members: [String: JSONValue] = [:]
        advance()
        try skipSpace()
        while let scalar = peek, scalar != "}" {
            let start = place
            let name = try takeName()
            let member = path.member(name)
            if places.updateValue(start, forKey: member) != nil { repeated = repeated ?? member }
            try skipSpace()
            guard peek == ":" else { throw fault("expected ':' after \(name)") }
            advance()
            try skipSpace()
            members[name] = try takeValue(at: member)
            try skipComma(before: "}")
        }
        try end(with: "}")
        return .object(members)
    }

    private mutating func takeArray(at path: OptionPath) throws(Fault) -> JSONValue {
        var elements: [JSONValue] = []
        advance()
        try skipSpace()
        while let scalar = peek, scalar != "]" {
            let element = path.element(elements.count)
            places[element] = place
            elements.append(try takeValue(at: element))
            try skipComma(before: "]")
        }
        try end(with: "]")
        return .array(elements)
    }

    private mutating func skipComma(before end: Unicode.Scalar) throws(Fault) {
        try skipSpace()
        if peek == "," {
            advance()
        } else if let scalar = peek, scalar != end {
            throw fault("expected ',' or '\(end)'")
        }
        try skipSpace()
    }

    private mutating func end(with scalar: Unicode.Scalar) throws(Fault) {
        guard peek == scalar else { throw fault("expected '\(scalar)'") }
        advance()
    }

    // MARK: Names and strings

    private mutating func takeName() throws(Fault) -> String {
        if peek == "\"" || peek == "'" { return try takeString() }
        let start = place
        let name = takeWord()
        guard !name.isEmpty else { throw fault("expected a name", at: start) }
        guard OptionDocument.isName(name) else {
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

    /// What comes before the next sign or space: a name without quotes, a number, `true`.
    private mutating func takeWord() -> String {
        var word = String.UnicodeScalarView()
        while let scalar = peek, !OptionDocument.isSpace(scalar) {
            switch scalar {
            case ",", ":", "]", "}", "/": return String(word)
            default:
                word.append(scalar)
                advance()
            }
        }
        return String(word)
    }

    private mutating func takeString() throws(Fault) -> String {
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
        guard peek == quote else { throw fault("this string has no end", at: start) }
        advance()
        return String(string)
    }

    /// - Returns: What the escape stands for; nil for a line that goes on.
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

    /// Four digits, or two escapes of four that make one character together.
    private mutating func takeUnicode(from start: Place) throws(Fault) -> Unicode.Scalar {
        let first = try takeHexadecimal(4, from: start)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard UTF16.isLeadSurrogate(UInt16(first)), isNext("\\", "u") else {
            throw fault("half of a surrogate pair", at: start)
        }
        advance()
        advance()
        let second = try takeHexadecimal(4, from: start)
        guard UTF16.isTrailSurrogate(UInt16(second)),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw fault("half of a surrogate pair", at: start) }
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
