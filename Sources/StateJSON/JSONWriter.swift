package import StateModel

/// Writes JSON: without white space, or over several lines.
package struct JSONWriter {
    private var bytes: [UInt8] = []
    /// Whether something was left out because it is nested too deep.
    private var isTooDeep = false
    private var depth = 0
    private let isIndented: Bool

    /// If `isIndented`, each element and member has a line of its own, indented by 2 spaces for each
    /// array and object around it.
    package init(isIndented: Bool = false) { self.isIndented = isIndented }

    /// The text.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if something was left out because it is nested too deep.
    package func text() throws(StateError) -> [UInt8] {
        guard !isTooDeep else {
            throw StateError(.err, "the value is nested deeper than \(JSONDocument.depthLimit)")
        }
        return bytes
    }

    /// Appends text that needs no escape: digits, `true`, `false`, `null`.
    package mutating func append(word: String) { bytes += word.utf8 }

    /// Appends elements between two brackets, separated by commas; nothing if that is nested too
    /// deep.
    package mutating func append<Elements: Collection>(
        _ elements: Elements,
        in begin: Unicode.Scalar,
        _ end: Unicode.Scalar,
        each appendElement: (inout JSONWriter, Elements.Element) -> Void
    ) {
        depth += 1
        defer { depth -= 1 }
        guard depth <= JSONDocument.depthLimit else {
            isTooDeep = true
            return
        }
        bytes.append(UInt8(ascii: begin))
        var isFirst = true
        for element in elements {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            breakLine(depth)
            appendElement(&self, element)
        }
        if !isFirst { breakLine(depth - 1) }
        bytes.append(UInt8(ascii: end))
    }

    private mutating func breakLine(_ depth: Int) {
        guard isIndented else { return }
        bytes.append(UInt8(ascii: "\n"))
        bytes += repeatElement(UInt8(ascii: " "), count: 2 * depth)
    }

    /// Appends the name of a member and its colon.
    package mutating func append(name: String) {
        append(string: name)
        bytes.append(UInt8(ascii: ":"))
        if isIndented { bytes.append(UInt8(ascii: " ")) }
    }

    /// Appends a string; only `"`, `\` and control characters are escaped.
    package mutating func append(string text: String) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { text in
            var plain = 0
            for (index, byte) in text.enumerated()
            where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                bytes += text[plain..<index]
                plain = index + 1
                appendEscape(byte)
            }
            bytes += text[plain...]
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func appendEscape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0..<0x20: bytes += "u00\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))".utf8
        default: bytes.append(byte)
        }
    }
}

extension JSONWriter {
    /// The order of names: byte order, not that of characters, like Foundation's encoder on Linux.
    package static func order(_ left: String, _ right: String) -> Int {
        var (left, right) = (left, right)
        return left.withUTF8 { left in right.withUTF8 { Bytes(left).order(to: Bytes($0)) } }
    }
}
