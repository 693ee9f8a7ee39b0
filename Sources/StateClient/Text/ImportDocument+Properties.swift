import StateModel

/// ```
/// # comment                 ! as well
/// key = value               or key: value, or key value
/// two\ words = a\
///     b \u00e9\t            lines are joined; escapes are decoded, in keys, too
/// ```
///
/// https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html#load(java.io.Reader)
/// Text must be UTF-8. A single surrogate, which Java keeps, is refused.
extension ImportDocument {
    mutating func nextProperty() throws(StateError) -> ImportLine? {
        guard var text = try nextPropertyLine() else { return nil }
        while text.reversed().prefix(while: { $0 == UInt8(ascii: "\\") }).count % 2 == 1 {
            text.removeLast()
            guard let next = try nextLine() else { break }
            text += next.drop(while: ImportDocument.isSpace)
        }
        var index = 0
        while index < text.count, !ImportDocument.isDivider(text[index]) {
            index += text[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        index = min(index, text.count)
        var rest = text[index...].drop(while: ImportDocument.isSpace)
        if rest.first == UInt8(ascii: "=") || rest.first == UInt8(ascii: ":") {
            rest = rest.dropFirst().drop(while: ImportDocument.isSpace)
        }
        return ImportLine(
            key: try ImportDocument.unescaped(text[..<index]),
            value: try ImportDocument.unescaped(rest)
        )
    }

    /// The first line of an entry, without the space before it; a line of form feeds is empty, too.
    private mutating func nextPropertyLine() throws(StateError) -> [UInt8]? {
        while let content = try nextFirstLine(comments: "#!") {
            let text = content.drop(while: ImportDocument.isSpace)
            if let first = text.first, !"#!".utf8.contains(first) { return Array(text) }
        }
        return nil
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte.isBlank || byte == 0x0C }

    private static func isDivider(_ byte: UInt8) -> Bool {
        isSpace(byte) || byte == UInt8(ascii: "=") || byte == UInt8(ascii: ":")
    }

    private static func unescaped(_ text: ArraySlice<UInt8>) throws(StateError) -> [UInt8] {
        guard text.contains(UInt8(ascii: "\\")) else { return Array(text) }
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let sign = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch sign {
            case UInt8(ascii: "n"): bytes.append(UInt8(ascii: "\n"))
            case UInt8(ascii: "r"): bytes.append(UInt8(ascii: "\r"))
            case UInt8(ascii: "t"): bytes.append(UInt8(ascii: "\t"))
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "u"): bytes += Array(String(try takeScalar(&rest)).utf8)
            default: bytes.append(sign)
            }
        }
        return bytes
    }

    /// Reads the digits behind `\u`; of a surrogate pair, also the second escape.
    private static func takeScalar(
        _ text: inout ArraySlice<UInt8>
    ) throws(StateError) -> Unicode.Scalar {
        guard let first = takeUnit(&text) else {
            throw StateError(.err, #"\u needs 4 hexadecimal digits"#)
        }
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, text.starts(with: Array(#"\u"#.utf8)) else { throw loneSurrogate }
        text = text.dropFirst(2)
        guard let second = takeUnit(&text), 0xDC00...0xDFFF ~= second,
            let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        else { throw loneSurrogate }
        return scalar
    }

    private static var loneSurrogate: StateError {
        StateError(.err, #"\u has half of a surrogate pair: write both halves"#)
    }

    private static func takeUnit(_ text: inout ArraySlice<UInt8>) -> UInt32? {
        guard text.count >= 4 else { return nil }
        var unit: UInt32 = 0
        for digit in text.prefix(4) {
            guard let value = Hexadecimal.value(of: digit) else { return nil }
            unit = unit << 4 | UInt32(value)
        }
        text = text.dropFirst(4)
        return unit
    }
}
