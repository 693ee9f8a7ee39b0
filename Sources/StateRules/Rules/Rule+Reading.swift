import StateEngine
package import StateJSON

/// Finds the numbers of users and groups.
package struct AccountDirectory: Sendable {
    /// The uid of a user; nil for none of that name.
    package var user: @Sendable (String) -> UInt32?
    /// The gid of a group.
    package var group: @Sendable (String) -> UInt32?

    package init(
        user: @escaping @Sendable (String) -> UInt32?,
        group: @escaping @Sendable (String) -> UInt32?
    ) {
        (self.user, self.group) = (user, group)
    }
}

extension Rule {
    /// Reads a rule out of a configuration.
    ///
    /// - Throws: ``OptionFault``, with the place of what cannot be used.
    package init(
        _ value: JSONValue,
        at path: JSONPath,
        index: Int,
        accounts: AccountDirectory
    ) throws(OptionFault) {
        var reader = try OptionReader(value, at: path)
        let keys = try reader.read("keys", Rule.pattern)
        guard let keys else {
            throw OptionFault(path, "'keys' is missing: a key, a prefix that ends in /, or a glob")
        }
        self.index = index
        self.keys = keys
        source = value
        try readStorage(&reader)
        schema = try reader.read("schema") { value, path throws(OptionFault) in
            try Schema(value, at: path)
        }
        try readValue(&reader)
        for action in KeyAction.allCases {
            access[action] = try reader.read(action.rawValue) { value, path throws(OptionFault) in
                try Rule.principals(value, path, accounts)
            }
        }
        limits = try reader.read("limits", Rule.limits) ?? [:]
        softLimits = try reader.read("softLimits", Rule.limits) ?? [:]
        try checkLimits(reader.path)
        try reader.finish()
    }

    private static func pattern(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) -> Pattern {
        let text = try value.option(path, as: String.self)
        do throws(StateError) { return try Pattern(text) } catch {
            throw OptionFault(path, error.message)
        }
    }

    private static func word<Word: CaseIterable & RawRepresentable<String>>(
        _ value: JSONValue,
        _ path: JSONPath,
        of words: Word.Type
    ) throws(OptionFault) -> Word {
        let text = try value.option(path, as: String.self)
        guard let word = Word(rawValue: text) else {
            let names = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw OptionFault(path, "one of \(names) is wanted, not \"\(text)\"")
        }
        return word
    }

    private enum BackingName: String, CaseIterable { case sqlite, file, memory }

    private mutating func readStorage(_ reader: inout OptionReader) throws(OptionFault) {
        let name = try reader.read("backing") { value, path throws(OptionFault) in
            try Rule.word(value, path, of: BackingName.self)
        }
        let directory = try reader.read("directory") { value, path throws(OptionFault) in
            let text = try value.option(path, as: String.self)
            guard text.hasPrefix("/"), text.count > 1, text.utf8.allSatisfy({ $0 >= 0x20 }) else {
                throw OptionFault(
                    path,
                    "an absolute path of a directory is wanted, not \"\(text)\""
                )
            }
            return text
        }
        let isShared = try reader.read("shared") { value, path throws(OptionFault) in
            try value.option(path, as: Bool.self)
        }
        if name != .file, directory != nil || isShared != nil {
            let option = directory == nil ? "shared" : "directory"
            throw OptionFault(
                reader.path.member(option),
                "it goes with backing: \"file\", in the same rule"
            )
        }
        switch name {
        case nil: break
        case .sqlite: backing = .sqlite
        case .memory: backing = .memory
        case .file:
            guard let directory else {
                throw OptionFault(reader.path, "backing: \"file\" needs a directory")
            }
            guard keys.kind != .glob else {
                throw OptionFault(
                    reader.path.member("backing"),
                    "keys in files are those of a prefix or one key, not of a glob"
                )
            }
            backing = .file(directory: directory, isShared: isShared ?? false)
        }
        durability = try reader.read("durability") { value, path throws(OptionFault) in
            let text = try value.option(path, as: String.self)
            guard let level = Durability(text) else {
                throw OptionFault(path, "one of memory, written, synced is wanted, not \"\(text)\"")
            }
            return level
        }
        expiry = try reader.read("expire") { value, path throws(OptionFault) in
            let time = try value.duration(path)
            guard time > .zero else { throw OptionFault(path, "a time above 0 is wanted") }
            return time
        }
    }

    private mutating func readValue(_ reader: inout OptionReader) throws(OptionFault) {
        let kind = keys.kind
        standard = try reader.read("default") { value, path throws(OptionFault) in
            guard kind == .key else {
                throw OptionFault(path, "a default is of one key, not of a pattern")
            }
            return try Rule.bytes(value, path)
        }
        isReadOnly = try reader.read("readonly") { value, path throws(OptionFault) in
            try value.option(path, as: Bool.self)
        }
        isWriteOnce = try reader.read("writeOnce") { value, path throws(OptionFault) in
            try value.option(path, as: Bool.self)
        }
    }

    /// The bytes that an entry of that value has: a text is bare.
    private static func bytes(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) -> [UInt8] {
        if case .string(let text) = value { return Array(text.utf8) }
        do throws(StateError) { return try value.text() } catch {
            throw OptionFault(path, error.message)
        }
    }

    private static func principals(
        _ value: JSONValue,
        _ path: JSONPath,
        _ accounts: AccountDirectory
    ) throws(OptionFault) -> [Principal] {
        var principals: [Principal] = []
        for (element, path) in try value.elements(path) {
            let text = try element.option(path, as: String.self)
            principals.append(try principal(text, path, accounts))
        }
        return principals
    }

    private static func principal(
        _ text: String,
        _ path: JSONPath,
        _ accounts: AccountDirectory
    ) throws(OptionFault) -> Principal {
        if text == "*" { return .everybody }
        if text == "owner" { return .owner }
        if text.hasPrefix("group:") {
            let name = String(text.dropFirst(6))
            guard let number = UInt32(name) ?? accounts.group(name) else {
                throw OptionFault(path, "there is no group \"\(name)\" on this machine")
            }
            return .group(number, name: name)
        }
        guard let number = UInt32(text) ?? accounts.user(text) else {
            throw OptionFault(
                path,
                "there is no user \"\(text)\" on this machine; a group is \"group:NAME\", everybody \"*\""
            )
        }
        return .user(number, name: text)
    }

    /// A connection is of no keys, and of how deep a value is nothing is logged.
    private func checkLimits(_ path: JSONPath) throws(OptionFault) {
        for (name, limits) in [("limits", limits), ("softLimits", softLimits)] {
            guard limits[.connections] != nil, keys != .everything else { continue }
            throw OptionFault(
                path.member(name).member(KeyLimit.connections.rawValue),
                "a connection is of all keys: it goes into the rule for \"/\""
            )
        }
        if softLimits[.depth] != nil {
            throw OptionFault(
                path.member("softLimits").member(KeyLimit.depth.rawValue),
                "there is only limits.depth: a value that is deeper is refused"
            )
        }
    }

    private static func limits(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) -> [KeyLimit: Int64] {
        var reader = try OptionReader(value, at: path)
        var limits: [KeyLimit: Int64] = [:]
        for limit in KeyLimit.allCases {
            limits[limit] = try reader.read(limit.rawValue) { value, path throws(OptionFault) in
                switch limit {
                case .valueBytes, .bytes: try value.byteCount(path, in: 0...Int64.max)
                case .depth: Int64(try value.count(path, in: 0...JSONDocument.depthLimit))
                default: Int64(try value.count(path, in: 0...Int.max))
                }
            }
        }
        try reader.finish()
        return limits
    }
}
