import StateModel

/// ```
/// ; comment             # as well
/// [section]             the keys that follow are below section/
/// key = value           spaces around both do not count
/// key = "a ; b"         quotes around a value do not count
/// ```
///
/// Refused, because programs differ: a line that is indented more than the option before, which
/// continues its value for some; ` ;` and ` #` in a value without quotes, which begin a comment for
/// some; `:` in a key; quotes or `\` inside quotes; `\` at the end.
extension ImportDocument {
    mutating func nextOption() throws(StateError) -> ImportLine? {
        while let content = try nextFirstLine(comments: "#;") {
            let text = content.trimmed
            guard text.first != UInt8(ascii: "[") else {
                try beginSection(text.dropFirst())
                continue
            }
            try checkIndentation(content.prefix { $0.isBlank }.count)
            guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else {
                throw StateError(.err, "expected 'key = value' or '[section]'")
            }
            let key = text[..<equals].trimmed
            guard !key.contains(UInt8(ascii: ":")) else {
                throw StateError(.err, "programs differ about a : before the =: remove it")
            }
            try text.withUnsafeBufferPointer { (bytes) throws(StateError) in
                try ForeignText.checkDivider(of: Bytes(bytes), at: equals - text.startIndex)
            }
            let value = try ImportDocument.optionValue(text[(equals + 1)...].trimmed)
            return ImportLine(section: section, key: Array(key), value: value)
        }
        return nil
    }

    private mutating func beginSection(_ text: ArraySlice<UInt8>) throws(StateError) {
        guard let end = text.firstIndex(of: UInt8(ascii: "]")) else {
            throw StateError(.err, "the name of the section has no closing ]")
        }
        let name = text[..<end].trimmed
        guard !name.isEmpty, !name.contains(UInt8(ascii: "\"")), name.last != UInt8(ascii: "/")
        else {
            throw StateError(
                .err,
                "\(StateError.quoted(name)) cannot be a prefix: give the section a name without quotes that does not end in /"
            )
        }
        try ImportDocument.checkEnd(text[(end + 1)...], comments: "#;")
        section = Array(name)
        indentation = nil
    }

    private mutating func checkIndentation(_ count: Int) throws(StateError) {
        if let indentation, count > indentation {
            throw StateError(
                .err,
                "the line is indented more than the one before, and continues its value for some programs: write the value in one line, or indent both alike"
            )
        }
        indentation = count
    }

    private static func optionValue(_ text: ArraySlice<UInt8>) throws(StateError) -> [UInt8] {
        guard let quote = text.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
        else {
            try checkPlain(text)
            return Array(text)
        }
        let rest = text.dropFirst()
        guard let end = rest.firstIndex(of: quote), !rest[..<end].contains(UInt8(ascii: "\\"))
        else {
            throw StateError(
                .err,
                "programs differ about \\ and quotes inside a value in quotes: remove the quotes, or them"
            )
        }
        try checkEnd(rest[(end + 1)...], comments: "#;")
        return Array(rest[..<end])
    }

    private static func checkPlain(_ text: ArraySlice<UInt8>) throws(StateError) {
        let hasComment = text.indices.dropFirst().contains {
            "#;".utf8.contains(text[$0]) && text[$0 - 1].isBlank
        }
        guard !hasComment else {
            throw StateError(
                .err,
                "for some programs a comment begins inside the value: put the comment in a line of its own, or the value in quotes"
            )
        }
        guard text.last != UInt8(ascii: "\\") else {
            throw StateError(.err, "for some programs a \\ at the end joins lines: remove it")
        }
    }
}
