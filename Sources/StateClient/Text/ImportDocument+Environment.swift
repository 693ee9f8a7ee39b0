import StateModel

/// ```
/// # comment                        ; as well, as in systemd
/// export NAME=value # comment      'export' is optional
/// NAME="a # b\n\"c\" \$d"          \n, \r, \t, \", \\, \$ and \` are decoded
/// NAME='a \n $b'                   everything is literal
/// ```
///
/// A value in quotes may have several lines. Refused, because programs differ: variables and
/// commands in a value (`$NAME`, `$(…)`, a leading backquote), `\` and `a#b` outside quotes, any
/// other escape, and text right behind a closing quote.
/// https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#EnvironmentFile=
extension ImportDocument {
    mutating func nextVariable() throws(StateError) -> ImportLine? {
        guard let content = try nextFirstLine(comments: "#;") else { return nil }
        var rest = content.trimmed
        let export = Array("export".utf8)
        if rest.starts(with: export), rest.dropFirst(export.count).first?.isBlank ?? false {
            rest = rest.dropFirst(export.count).trimmed
        }
        guard let equals = rest.firstIndex(of: UInt8(ascii: "=")) else {
            throw StateError(.err, "expected 'NAME=value'")
        }
        let name = Array(rest[..<equals].trimmed)
        guard ImportDocument.isName(name) else {
            throw StateError(
                .err,
                "\(StateError.quoted(name)) is no name of a variable: only letters, digits, _, . and - may be in it"
            )
        }
        return ImportLine(key: name, value: try value(rest[(equals + 1)...]))
    }

    private static func isName(_ name: [UInt8]) -> Bool {
        !name.isEmpty
            && name.allSatisfy {
                ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || "_.-".utf8.contains($0)
            }
    }

    private mutating func value(_ text: ArraySlice<UInt8>) throws(StateError) -> [UInt8] {
        let start = text.drop { $0.isBlank }
        switch start.first {
        case UInt8(ascii: "'"), UInt8(ascii: "\""):
            return try quotedValue(start)
        case UInt8(ascii: "`"):
            throw StateError(
                .err,
                "programs differ about a value in backquotes: use single quotes"
            )
        default: return try ImportDocument.plainValue(text)
        }
    }

    private static func plainValue(_ text: ArraySlice<UInt8>) throws(StateError) -> [UInt8] {
        let comment = text.indices.dropFirst().first {
            text[$0] == UInt8(ascii: "#") && text[$0 - 1].isBlank
        }
        let value = text[..<(comment ?? text.endIndex)].trimmed
        guard !value.contains(UInt8(ascii: "\\")), !value.contains(UInt8(ascii: "#")) else {
            throw StateError(
                .err,
                #"programs differ about \ and #, without a space before it, outside quotes: use single quotes"#
            )
        }
        for index in value.indices { try checkVariable(in: value, at: index) }
        return Array(value)
    }

    /// Refuses what a shell replaces.
    private static func checkVariable(
        in text: ArraySlice<UInt8>,
        at index: Int
    ) throws(StateError) {
        guard text[index] == UInt8(ascii: "$"), index + 1 < text.endIndex else { return }
        let next = text[index + 1]
        guard (next | 0x20) &- 0x61 < 26 || "_{(".utf8.contains(next) else { return }
        throw StateError(
            .err,
            "import does not replace variables: write the value, or use single quotes if $ is meant"
        )
    }

    /// Reads from a quote to the next one, which may be in a later line.
    private mutating func quotedValue(_ text: ArraySlice<UInt8>) throws(StateError) -> [UInt8] {
        var rest = text
        guard let quote = rest.popFirst() else { return [] }
        var value: [UInt8] = []
        while true {
            guard let byte = rest.first else {
                guard let next = try nextLine() else {
                    let sign = Unicode.Scalar(quote)
                    throw StateError(.err, "the value has no closing \(sign)")
                }
                value.append(UInt8(ascii: "\n"))
                rest = next
                continue
            }
            if byte == quote { break }
            if quote == UInt8(ascii: "\"") {
                try ImportDocument.checkVariable(in: rest, at: rest.startIndex)
                if byte == UInt8(ascii: "\\") {
                    value.append(try ImportDocument.escape(rest.dropFirst().first))
                    rest = rest.dropFirst(2)
                    continue
                }
            }
            value.append(byte)
            rest.removeFirst()
        }
        try ImportDocument.checkEnd(rest.dropFirst(), comments: "#")
        return value
    }

    private static func escape(_ byte: UInt8?) throws(StateError) -> UInt8 {
        switch byte {
        case UInt8(ascii: "n"): return UInt8(ascii: "\n")
        case UInt8(ascii: "r"): return UInt8(ascii: "\r")
        case UInt8(ascii: "t"): return UInt8(ascii: "\t")
        case let byte? where "\"\\$`".utf8.contains(byte): return byte
        default:
            throw StateError(
                .err,
                #"programs differ about this \ in double quotes: write \\, or use single quotes"#
            )
        }
    }

    /// Checks that only a comment follows.
    static func checkEnd(_ text: ArraySlice<UInt8>, comments: String) throws(StateError) {
        let rest = text.trimmed
        guard let first = rest.first else { return }
        guard text.first?.isBlank ?? false, comments.utf8.contains(first) else {
            throw StateError(.err, "unexpected \(StateError.quoted(rest)) at the end of the line")
        }
    }
}
