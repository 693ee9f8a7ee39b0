import StateModel

/// What means something to other programs, but not in a line `key = value`.
///
/// Taken as it is, it would become part of a key or value, and nobody would notice before that
/// value is used. So such a line is refused, with the way to write it if it is meant.
/// ``EscapedText`` writes keys and values in that way, so that whatever `list` prints is read back.
enum ForeignText {
    /// Refuses the line ends of old systems: all lines would be one.
    static func checkLine(_ line: Bytes) throws(StateError) {
        guard line.contains(UInt8(ascii: "\r")) else { return }
        throw StateError(
            .err,
            #"a carriage return inside the line: end lines with LF or CR LF; write \x0D if it is meant"#
        )
    }

    /// Refuses what begins a line of another format.
    static func checkStart(_ line: Bytes) throws(StateError) {
        switch line[0] {
        case UInt8(ascii: "["):
            throw StateError(
                .err,
                #"'[' begins a section, which 'import --format ini' reads; in a key write \x5B"#
            )
        case UInt8(ascii: ";"), UInt8(ascii: "!"):
            let sign = Unicode.Scalar(line[0])
            let format = sign == ";" ? "ini" : "properties"
            let escape = sign == ";" ? "3B" : "21"
            throw StateError(
                .err,
                "'\(sign)' begins a comment for 'import --format \(format)'; here # does; in a key write \\x\(escape)"
            )
        case ByteOrderMark.utf8[0] where line.starts(with: ByteOrderMark.utf8):
            throw StateError(
                .err,
                #"a BOM (U+FEFF) before the key: remove it; in a key write \xEF\xBB\xBF"#
            )
        default: break
        }
        guard line.starts(with: export), line.count > export.count, line[export.count].isBlank,
            let next = line.dropFirst(export.count).first(where: { !$0.isBlank }),
            next != UInt8(ascii: "=")
        else { return }
        throw StateError(
            .err,
            #"'export' is for a shell, and 'import --format env' reads it; in a key write export\x20"#
        )
    }

    /// Refuses assignments and comparisons such as `+=` and `==`, of which `=` is only a part.
    static func checkDivider(of line: Bytes, at equals: Int) throws(StateError) {
        var sign: [UInt8] = [UInt8(ascii: "=")]
        if equals > 0, "+:?!<>~".utf8.contains(line[equals - 1]) {
            sign.insert(line[equals - 1], at: 0)
        }
        if equals + 1 < line.count, "=>".utf8.contains(line[equals + 1]) {
            sign.append(line[equals + 1])
        }
        guard sign.count > 1 else { return }
        throw StateError(
            .err,
            "\(StateError.quoted(sign)) is no =: put a space on each side of the = that ends the key"
        )
    }

    /// Refuses a space or tab at either end of a key.
    static func checkSpaces(of key: Bytes) throws(StateError) {
        guard let first = key.first, let last = key.last, first.isBlank || last.isBlank else {
            return
        }
        throw StateError(
            .err,
            #"the key begins or ends with a space or tab: write \x20 if it is meant; 'import --format ini' ignores it"#
        )
    }

    /// Refuses `key: value` of YAML and of Java's properties, if the value has a `=`.
    static func checkColon(in key: Bytes) throws(StateError) {
        for index in key.indices.dropLast()
        where key[index] == UInt8(ascii: ":") && key[index + 1].isBlank {
            throw StateError(
                .err,
                #"': ' ends the key for 'import --format properties'; in a key write \x3A for :"#
            )
        }
    }

    /// Refuses a value as it is after the `=` and one space.
    static func checkValue(_ value: Bytes) throws(StateError) {
        guard let first = value.first, let last = value.last else { return }
        guard !isQuote(first) else {
            let escape = first == UInt8(ascii: "\"") ? "22" : "27"
            throw StateError(
                .err,
                "the quote would be part of the value: write \\x\(escape) if it is; 'import --format env' and 'ini' remove quotes"
            )
        }
        guard !first.isBlank, !last.isBlank else {
            throw StateError(
                .err,
                #"the value begins or ends with a space or tab: write \x20 or \t if it is meant; 'import --format ini' ignores it"#
            )
        }
        guard !hasComment(value) else {
            throw StateError(
                .err,
                #"' # ' would be part of the value: write \x23 for # if it is; 'import --format env' reads comments"#
            )
        }
        guard value.reversed().prefix(while: { $0 == UInt8(ascii: "\\") }).count.isMultiple(of: 2)
        else {
            throw StateError(
                .err,
                #"the value ends with a backslash: write \\ if it is meant; 'import --format properties' joins such lines"#
            )
        }
    }

    private static let export = Array("export".utf8)

    private static func isQuote(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'")
    }

    /// Whether a comment is at the end for a person, and for many programs.
    private static func hasComment(_ value: Bytes) -> Bool {
        var rest = value[...]
        while let index = rest.firstIndex(of: UInt8(ascii: "#")) {
            if isEnclosed(value[...], index) { return true }
            rest = rest[(index + 1)...]
        }
        return false
    }

    /// Whether a space or tab is on both sides.
    private static func isEnclosed<Text: RandomAccessCollection<UInt8>>(
        _ text: Text,
        _ index: Int
    ) -> Bool where Text.Index == Int {
        index > text.startIndex && text[index - 1].isBlank && index + 1 < text.endIndex
            && text[index + 1].isBlank
    }

    // MARK: Writing

    /// Whether the byte of a key, which is escaped already, must be escaped for all that is above.
    static func isSpecial(inKey text: ArraySlice<UInt8>, at index: Int) -> Bool {
        let isFirst = index == text.startIndex
        switch text[index] {
        case UInt8(ascii: "="): return true
        case UInt8(ascii: "{"), UInt8(ascii: "#"), UInt8(ascii: "["), UInt8(ascii: ";"),
            UInt8(ascii: "!"):
            return isFirst
        case UInt8(ascii: ":"):
            return index + 1 < text.endIndex && text[index + 1] == UInt8(ascii: " ")
        case UInt8(ascii: " "):
            return isFirst || index + 1 == text.endIndex || text[..<index].elementsEqual(export)
        default: return index < text.startIndex + 3 && text.starts(with: ByteOrderMark.utf8)
        }
    }

    /// Whether a value may have such a byte; large ones rarely do.
    static func mayBeSpecial(value text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first, let last = text.last else { return false }
        return isQuote(first) || first.isBlank || last.isBlank || text.contains(UInt8(ascii: "#"))
    }

    /// The same for a value.
    static func isSpecial(inValue text: ArraySlice<UInt8>, at index: Int) -> Bool {
        switch text[index] {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): index == text.startIndex
        case UInt8(ascii: " "): index == text.startIndex || index + 1 == text.endIndex
        case UInt8(ascii: "#"): isEnclosed(text, index)
        default: false
        }
    }
}
