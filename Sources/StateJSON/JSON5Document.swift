/// A JSON5 text: its value, and the line and column of each member and element.
///
/// Numbers keep their digits, so none is rounded; whole numbers of up to 19 digits are written out,
/// and a point has a digit on both sides. https://spec.json5.org
package struct JSON5Document {
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

    /// The value; of several members with the same name, the last.
    package private(set) var value = JSONValue.null
    /// The first member that appears twice in its object.
    package private(set) var repeated: JSONPath?
    /// All members and elements, each after its parent.
    private var nodes: [Node] = []

    private struct Node {
        let parent: Int
        /// Nil for the root.
        let step: JSONPath.Step?
        let place: Place
    }

    /// The largest nesting depth of arrays and objects, because the reader is recursive.
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
        if self.text.first == "\u{FEFF}" { (index, lineStart) = (1, 1) }
        try skipSpace()
        let whole = add(nil, to: 0, at: place)
        value = try takeValue(at: whole)
        try skipSpace()
        if peek != nil { throw fault("unexpected text after the value") }
    }

    /// The place of a member or element; for a missing one, that of the parent.
    ///
    /// - Complexity: O(*n*) in the length of the text, for each step of the path.
    package func place(of path: JSONPath) -> Place? {
        var node = 0
        for step in path.steps {
            let found = nodes.indices.dropFirst(node + 1).last {
                nodes[$0].parent == node && nodes[$0].step == step
            }
            guard let found else { break }
            node = found
        }
        return nodes.first.map { _ in nodes[node].place }
    }

    private mutating func add(_ step: JSONPath.Step?, to parent: Int, at place: Place) -> Int {
        nodes.append(Node(parent: parent, step: step, place: place))
        return nodes.count - 1
    }

    private func path(of node: Int) -> JSONPath {
        guard let step = nodes[node].step else { return JSONPath() }
        return path(of: nodes[node].parent).appending(step)
    }

    // MARK: Walking

    var place: Place { Place(line: line, column: index - lineStart + 1) }

    var peek: Unicode.Scalar? { index < text.count ? text[index] : nil }

    func fault(_ message: String, at place: Place? = nil) -> Fault {
        Fault(place: place ?? self.place, message: message)
    }

    static func endsLine(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\r" || scalar == "\u{2028}" || scalar == "\u{2029}"
    }

    static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\t", "\n", "\u{B}", "\u{C}", "\r", " ", "\u{FEFF}", "\u{2028}", "\u{2029}": true
        default: scalar.properties.generalCategory == .spaceSeparator
        }
    }

    mutating func advance() {
        let scalar = text[index]
        index += 1
        guard JSON5Document.endsLine(scalar), !(scalar == "\r" && peek == "\n") else { return }
        (line, lineStart) = (line + 1, index)
    }

    func isNext(_ first: Unicode.Scalar, _ second: Unicode.Scalar) -> Bool {
        index + 1 < text.count && text[index] == first && text[index + 1] == second
    }

    private mutating func skipSpace() throws(Fault) {
        while let scalar = peek {
            if isNext("/", "/") {
                while let next = peek, !JSON5Document.endsLine(next) { advance() }
            } else if isNext("/", "*") {
                try skipComment()
            } else if JSON5Document.isSpace(scalar) {
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
            guard peek != nil else { throw fault("this comment has no closing '*/'", at: start) }
            advance()
        }
        advance()
        advance()
    }

    // MARK: Values

    mutating func takeValue(at node: Int) throws(Fault) -> JSONValue {
        switch peek {
        case "{":
            return try nested { (document) throws(Fault) in try document.takeObject(at: node) }
        case "[": return try nested { (document) throws(Fault) in try document.takeArray(at: node) }
        case "\"", "'": return .string(try takeString())
        default: return try takeScalar()
        }
    }

    private mutating func nested(
        _ body: (inout JSON5Document) throws(Fault) -> JSONValue
    ) throws(Fault) -> JSONValue {
        guard depth < JSON5Document.depthLimit else {
            throw fault("nested deeper than \(JSON5Document.depthLimit)")
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
            guard let digits = JSON5Number.digits(of: word) else {
                throw fault("unexpected '\(word.prefix(64))'; strings need quotes", at: start)
            }
            return .number(digits)
        }
    }

    private mutating func takeObject(at node: Int) throws(Fault) -> JSONValue {
        var members: [String: JSONValue] = [:]
        advance()
        try skipSpace()
        while let scalar = peek, scalar != "}" {
            let start = place
            let name = try takeName()
            let member = add(.member(name), to: node, at: start)
            if members[name] != nil { repeated = repeated ?? path(of: member) }
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

    private mutating func takeArray(at node: Int) throws(Fault) -> JSONValue {
        var elements: [JSONValue] = []
        advance()
        try skipSpace()
        while let scalar = peek, scalar != "]" {
            let element = add(.element(elements.count), to: node, at: place)
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

    mutating func end(with scalar: Unicode.Scalar) throws(Fault) {
        guard peek == scalar else { throw fault("expected '\(scalar)'") }
        advance()
    }
}
