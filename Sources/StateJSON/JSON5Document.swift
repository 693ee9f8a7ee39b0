import StateModel

/// A JSON5 text: its value, its faults, and the place of each member and element.
///
/// Reading goes on after a fault where what follows can still be understood, so that one run finds
/// several. Numbers keep their digits, so none is rounded; whole numbers of up to 19 digits are
/// written out, and a point has a digit on both sides. https://spec.json5.org
///
/// Refused although the specification allows them: `Infinity` and `NaN`, which JSON cannot express;
/// half of a surrogate pair, which UTF-8 cannot; and `\` before a character that needs none, because
/// it is mostly meant for a pattern.
package struct JSON5Document {
    /// A line and a column, counted from 1, in code points.
    package struct Place: Hashable, Comparable, Sendable, CustomStringConvertible {
        package let line: Int
        package let column: Int

        package init(line: Int, column: Int) { (self.line, self.column) = (line, column) }

        package var description: String { "\(line):\(column)" }

        package static func < (left: Place, right: Place) -> Bool {
            (left.line, left.column) < (right.line, right.column)
        }
    }

    /// A place where the text is not JSON5, and why.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        package let place: Place
        package let message: String

        package var description: String { "\(place): \(message)" }
    }

    /// The value as far as it was read; of several members with the same name, the last.
    ///
    /// What has a fault is null.
    package internal(set) var value = JSONValue.null
    /// In the order in which they were found, at most ``faultLimit``.
    package internal(set) var faults: [Fault] = []
    /// All members and elements, each after its parent.
    var nodes: [Node] = []
    let children = ChildNodes()

    struct Node {
        let parent: Int
        /// Nil for the root.
        let step: JSONPath.Step?
        /// The offset of its first byte; for a member, of its name.
        let offset: Int
    }

    /// The largest nesting depth of arrays and objects, because the reader is recursive.
    package static let depthLimit = 200
    /// The most faults that are collected.
    package static let faultLimit = 20

    let text: [UInt8]
    var index = 0
    /// The nodes around the current position.
    private var open: [Int] = []
    /// The nodes that were open where reading ended early.
    private(set) var unfinished: Set<Int> = []
    /// The nodes whose values have faults.
    var faulty: Set<Int> = []
    private var isStopped = false

    /// Reads a text in UTF-8.
    ///
    /// - Complexity: O(*n*) in its length.
    package init(_ text: [UInt8]) {
        self.text = text
        if let place = text.withUnsafeBytes({ UTF8Sequence.invalidPlace($0) }) {
            let byte = String(text[place], radix: 16, uppercase: true)
            let prefix = byte.utf8.count == 1 ? "0x0" : "0x"
            index = place
            stop("the byte \(prefix)\(byte) (offset \(place)) is not UTF-8")
            return
        }
        index = firstOffset
        skipSpace()
        let whole = add(nil, to: 0)
        value = takeValue(at: whole)
        skipSpace()
        if peek != nil { stop("unexpected text after the value") }
    }

    /// Behind U+FEFF at the start.
    var firstOffset: Int { text.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0 }

    mutating func add(_ step: JSONPath.Step?, to parent: Int, at offset: Int? = nil) -> Int {
        nodes.append(Node(parent: parent, step: step, offset: offset ?? index))
        return nodes.count - 1
    }

    // MARK: Faults

    /// Records a fault, after which reading goes on.
    mutating func note(_ message: String, at offset: Int? = nil) {
        guard !isStopped, faults.count < JSON5Document.faultLimit else { return }
        faults.append(Fault(place: place(at: offset ?? index), message: message))
    }

    /// Records a fault, after which nothing more can be read.
    mutating func stop(_ message: String, at offset: Int? = nil) {
        guard !isStopped else { return }
        note(message, at: offset)
        isStopped = true
        unfinished = Set(open)
        index = text.count
    }

    /// Records a fault in the value of `node`.
    mutating func note(_ message: String, in node: Int, at offset: Int? = nil) {
        note(message, at: offset)
        faulty.insert(node)
    }

    // MARK: Walking

    var peek: UInt8? { index < text.count ? text[index] : nil }

    func isNext(_ first: UInt8, _ second: UInt8) -> Bool {
        index + 1 < text.count && text[index] == first && text[index + 1] == second
    }

    private mutating func skipSpace() {
        while index < text.count {
            if isNext(UInt8(ascii: "/"), UInt8(ascii: "/")) {
                index = endOfLine(from: index)
            } else if isNext(UInt8(ascii: "/"), UInt8(ascii: "*")) {
                skipComment()
            } else {
                let length = spaceLength(at: index)
                guard length > 0 else { return }
                index += length
            }
        }
    }

    private mutating func skipComment() {
        let start = index
        index += 2
        while !isNext(UInt8(ascii: "*"), UInt8(ascii: "/")) {
            guard index < text.count else {
                return stop("this comment has no closing '*/'", at: start)
            }
            index += 1
        }
        index += 2
    }

    // MARK: Values

    private mutating func takeValue(at node: Int) -> JSONValue {
        open.append(node)
        defer { open.removeLast() }
        switch peek {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard open.count <= JSON5Document.depthLimit else {
                stop("nested deeper than \(JSON5Document.depthLimit)")
                return .null
            }
            return peek == UInt8(ascii: "{") ? takeObject(at: node) : takeArray(at: node)
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string(takeString(at: node))
        default: return takeScalar(at: node)
        }
    }

    private mutating func takeScalar(at node: Int) -> JSONValue {
        let start = index
        let word = takeWord()
        switch word {
        case "":
            missingValue(at: node)
            return .null
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .null
        default:
            if let digits = JSON5Number.digits(of: word) { return .number(digits) }
            note(JSON5Number.fault(of: word), in: node, at: start)
            skipToEndOfValue()
            return .null
        }
    }

    /// Where a value should begin, there is another sign.
    private mutating func missingValue(at node: Int) {
        switch peek {
        case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"):
            if open.count > 1 { return note("expected a value", in: node) }
        default: break
        }
        stop("expected a value")
    }

    /// Goes behind a value that cannot be understood: to the next comma, bracket or line.
    private mutating func skipToEndOfValue() {
        let end = endOfLine(from: index)
        let signs: [UInt8] = [UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]")]
        while index < end, !signs.contains(text[index]),
            !isNext(UInt8(ascii: "/"), UInt8(ascii: "/"))
        {
            index += 1
        }
    }

    private mutating func takeObject(at node: Int) -> JSONValue {
        var members: [String: JSONValue] = [:]
        let close = UInt8(ascii: "}")
        index += 1
        skipSpace()
        while let byte = peek, byte != close {
            let start = index
            guard let name = takeName(of: node) else {
                skipComma(before: close)
                continue
            }
            let member = add(.member(name), to: node, at: start)
            if let place = members.index(forKey: name) {
                noteRepeated(name, of: member, before: members[place].key)
            }
            skipSpace()
            members[name] = takeValue(behind: name, at: member)
            skipComma(before: close)
        }
        end(with: close)
        return .object(members)
    }

    private mutating func takeValue(behind name: String, at node: Int) -> JSONValue {
        guard peek == UInt8(ascii: ":") else {
            let message = "expected ':' after \(name)"
            if peek == UInt8(ascii: ",") || peek == UInt8(ascii: "}") {
                note(message, in: node)
            } else {
                stop(message)
            }
            return .null
        }
        index += 1
        skipSpace()
        return takeValue(at: node)
    }

    private mutating func noteRepeated(_ name: String, of node: Int, before known: String) {
        let isSame = name.utf8.elementsEqual(known.utf8)
        note(
            isSame
                ? "\(path(of: node)): this option appears twice"
                : "\(path(of: node)): only its Unicode form (NFC, NFD) differs from that of another "
                    + "name; keep one of them",
            in: node,
            at: nodes[node].offset
        )
    }

    private mutating func takeArray(at node: Int) -> JSONValue {
        var elements: [JSONValue] = []
        let close = UInt8(ascii: "]")
        index += 1
        skipSpace()
        while let byte = peek, byte != close {
            let element = add(.element(elements.count), to: node)
            elements.append(takeValue(at: element))
            skipComma(before: close)
        }
        end(with: close)
        return .array(elements)
    }

    private mutating func skipComma(before close: UInt8) {
        skipSpace()
        if peek == UInt8(ascii: ",") {
            index += 1
        } else if let byte = peek, byte != close {
            let message = "expected ',' or '\(Unicode.Scalar(close))'"
            let strays: [UInt8] = [UInt8(ascii: ":"), UInt8(ascii: "}"), UInt8(ascii: "]")]
            strays.contains(byte) ? stop(message) : note(message)
        }
        skipSpace()
    }

    private mutating func end(with close: UInt8) {
        guard peek == close else { return stop("expected '\(Unicode.Scalar(close))'") }
        index += 1
    }
}
