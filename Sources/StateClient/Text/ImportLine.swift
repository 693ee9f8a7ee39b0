import StateJSON
package import StateModel

/// One line of an import.
///
/// ```
/// kernel.hostname = box              as `sysctl -a` and `statectl list` print it
/// kernel.domainname =                an empty value
/// path=a = b                         the first = separates; a space on each side is ignored
/// {"key":"a","value":"0.7"}          as `statectl export` prints it; other fields are ignored
/// {"key":"a","base64":"AP8="}
/// # comment                          comments and empty lines are ignored
/// ```
///
/// In the first form, `\\`, `\n`, `\t` and `\xNN` are the escapes that `list` writes; any other `\`
/// is kept. Any other line is an error: sysctl writes its own messages to standard error, and
/// repeats the key before each line of a value with several lines (the last one counts).
package struct ImportLine: Hashable, Sendable {
    /// The unescaped key.
    package let key: [UInt8]
    /// The value.
    package let value: [UInt8]

    /// Parses a line without its newline; nil for a comment or an empty line.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``: why the line cannot be parsed.
    package init?(_ line: Bytes) throws(StateError) {
        guard let first = line.first, first != UInt8(ascii: "#"),
            !line.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") })
        else { return nil }
        if first == UInt8(ascii: "{") {
            try self.init(json: line)
        } else {
            try self.init(pair: line)
        }
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
        guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else {
            throw StateError(.err, "expected 'key = value' or a JSON object")
        }
        let space = UInt8(ascii: " ")
        let keyEnd = equals > 0 && line[equals - 1] == space ? equals - 1 : equals
        let next = equals + 1
        let valueBegin = next < line.count && line[next] == space ? next + 1 : next
        self.init(
            key: EscapedText.decoded(line.slice(0, keyEnd)),
            value: EscapedText.decoded(line.slice(valueBegin, line.count))
        )
    }

    private init(key: [UInt8], value: [UInt8]) {
        self.key = key
        self.value = value
    }
}
