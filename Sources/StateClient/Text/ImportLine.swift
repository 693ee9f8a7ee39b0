import StateJSON
package import StateModel

/// One entry of an import.
///
/// ```
/// kernel/hostname = box              as `statectl list` prints it
/// kernel/domainname =                an empty value
/// path=a = b                         the first = separates; a space on each side is ignored
/// {"key":"a","value":"0.7"}          as `statectl export` prints it; other fields are ignored
/// {"key":"a","base64":"AP8="}
/// # comment                          comments and empty lines are ignored
/// ```
///
/// In the first form, `\\`, `\n`, `\t` and `\xNN` are the escapes that `list` writes; any other `\`
/// is kept. A line that means something else to the program that it was written for is an error:
/// see ``ForeignText``.
package struct ImportLine: Hashable, Sendable {
    /// The section of an INI file that the key is in; empty without one.
    package let section: [UInt8]
    /// The unescaped key.
    package let key: [UInt8]
    /// The value.
    package let value: [UInt8]

    /// Parses a line without its line end; nil for a comment or an empty line.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``: why the line cannot be parsed.
    package init?(_ line: Bytes) throws(StateError) {
        try ForeignText.checkLine(line)
        guard let start = line.firstIndex(where: { !$0.isBlank }), line[start] != UInt8(ascii: "#")
        else { return nil }
        if line[start] == UInt8(ascii: "{") {
            try self.init(json: line)
        } else {
            try self.init(pair: line)
        }
    }

    /// Parses a line as `sysctl -a` prints it, or `sysctl.d` has it.
    ///
    /// There are no escapes: after a `=` and one space, everything is the value. `;` begins a
    /// comment, too. sysctl prints a value of several lines as several lines with the same key.
    ///
    /// - Throws: as above.
    package init?(sysctl line: Bytes) throws(StateError) {
        try ForeignText.checkLine(line)
        guard let start = line.firstIndex(where: { !$0.isBlank }), line[start] != UInt8(ascii: "#"),
            line[start] != UInt8(ascii: ";")
        else { return nil }
        let equals = line.firstIndex(of: UInt8(ascii: "=")) ?? start
        let key = Array(line.slice(start, equals))[...].trimmed
        guard equals > start, !key.contains(where: \.isBlank) else {
            throw StateError(.err, "expected 'name = value', as sysctl prints it")
        }
        guard key.first != UInt8(ascii: "-"), !key.contains(UInt8(ascii: "*")) else {
            throw StateError(
                .err,
                "'-' before a name and '*' are for sysctl.d: name each setting, as sysctl -a prints it"
            )
        }
        self.init(key: Array(key), value: Array(line.slice(equals + 1, line.count).droppingSpace))
    }

    private init(json line: Bytes) throws(StateError) {
        let object: JSONDocument
        do throws(JSONFault) {
            object = try JSONDocument(Array(line), depthLimit: 64)
        } catch {
            let isFirstOfSeveral = error.offset >= line.count
            let advice = isFirstOfSeveral ? "; 'statectl apply' reads a document of JSON" : ""
            throw StateError(.err, "\(error.message), at byte \(error.offset + 1)\(advice)")
        }
        let members = try ImportLine.members(of: object)
        func string(_ name: String) -> [UInt8]? {
            guard let token = members[Array(name.utf8)].map({ object.tokens[$0] }),
                token.kind == .string || token.kind == .escapedString
            else { return nil }
            return Array(object.text(of: token).utf8)
        }
        guard let key = string("key") else {
            throw StateError(
                .err,
                "the object has no string \"key\"; 'statectl apply' reads a document of JSON"
            )
        }
        switch (string("value"), string("base64")) {
        case (let value?, nil): self.init(key: key, value: value)
        case (nil, let text?):
            guard let value = Base64.decoded(text) else {
                throw StateError(.err, "\"base64\" is not base 64")
            }
            self.init(key: key, value: value)
        case (nil, nil):
            throw StateError(.err, "the object has no string \"value\" or \"base64\"")
        case (_?, _?):
            throw StateError(.err, "the object has \"value\" and \"base64\"; give one of them")
        }
    }

    /// The places of the values, by their names.
    private static func members(of object: JSONDocument) throws(StateError) -> [[UInt8]: Int] {
        var members: [[UInt8]: Int] = [:]
        var repeated: [UInt8]?
        object.forEachMember(of: 0) { name, value in
            let name = Array(object.text(of: object.tokens[name]).utf8)
            if members.updateValue(value, forKey: name) != nil { repeated = name }
            return repeated == nil
        }
        if let repeated {
            let name = StateError.quoted(repeated)
            throw StateError(.err, "the member \(name) appears twice; remove one of them")
        }
        return members
    }

    private init(pair line: Bytes) throws(StateError) {
        try ForeignText.checkStart(line)
        guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else {
            throw StateError(.err, "expected 'key = value' or a JSON object")
        }
        try ForeignText.checkDivider(of: line, at: equals)
        let isSpaced = equals > 0 && line[equals - 1] == UInt8(ascii: " ")
        let key = line.slice(0, isSpaced ? equals - 1 : equals)
        let value = line.slice(equals + 1, line.count).droppingSpace
        try ForeignText.checkColon(in: key)
        try ForeignText.checkValue(value)
        self.init(key: try ImportLine.key(key), value: EscapedText.decoded(value))
    }

    /// The bytes of a key as `list` prints it.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if a space or tab is at one of its ends.
    package static func key(_ text: Bytes) throws(StateError) -> [UInt8] {
        try ForeignText.checkSpaces(of: text)
        return EscapedText.decoded(text)
    }

    /// The key below its section.
    package var name: [UInt8] { section.isEmpty ? key : section + [UInt8(ascii: "/")] + key }

    init(section: [UInt8] = [], key: [UInt8], value: [UInt8]) {
        self.section = section
        self.key = key
        self.value = value
    }
}

extension Bytes {
    /// Without one space at the start.
    fileprivate var droppingSpace: Bytes {
        first == UInt8(ascii: " ") ? slice(1, count) : self
    }
}

extension UInt8 {
    /// Whether it is a space or a tab.
    var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}

extension ArraySlice<UInt8> {
    /// Without the spaces and tabs at both ends.
    var trimmed: ArraySlice<UInt8> {
        let end = lastIndex { !$0.isBlank }.map { $0 + 1 } ?? startIndex
        return self[startIndex..<end].drop { $0.isBlank }
    }
}
