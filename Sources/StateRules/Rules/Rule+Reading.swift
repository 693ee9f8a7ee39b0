import StateEngine
package import StateJSON

/// Finds the numbers of users and groups.
package struct AccountDirectory: Sendable {
    /// The uid of a user; nil if there is no user of that name.
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

extension AccountDirectory {
    /// The gid of a group, which may also be given as a number.
    func groupNumber(_ name: String, _ path: JSONPath) throws(OptionFault) -> UInt32 {
        if let number = UInt32(name) ?? group(name) { return number }
        throw OptionFault(path, "this machine has no group \"\(name)\"")
    }

    /// The principal that a word of an access list names.
    fileprivate func principal(_ text: String, _ path: JSONPath) throws(OptionFault) -> Principal {
        if text == "*" { return .everybody }
        if text == "owner" { return .owner }
        if text.hasPrefix("group:") {
            let name = String(text.dropFirst(6))
            return .group(try groupNumber(name, path), name: name)
        }
        if let number = UInt32(text) ?? user(text) { return .user(number, name: text) }
        throw OptionFault(
            path,
            "this machine has no user \"\(text)\"; write \"group:NAME\" for a group, \"*\" for "
                + "everybody"
        )
    }
}

extension Rule {
    /// Reads a rule of a configuration.
    ///
    /// - Throws: ``OptionFault``, with the path of the wrong value.
    package init(
        _ value: JSONValue,
        at path: JSONPath,
        index: Int,
        accounts: AccountDirectory,
        schemas: SchemaLibrary = SchemaLibrary()
    ) throws(OptionFault) {
        var reader = try OptionReader(value, at: path)
        guard let keys = try reader.string("keys", Rule.pattern) else {
            throw OptionFault(
                path,
                "'keys' is missing; expected a key, a prefix that ends in /, or a glob"
            )
        }
        self.index = index
        self.keys = keys
        source = value
        try readStorage(&reader)
        schema = try reader.read("schema") { value, path throws(OptionFault) in
            try Schema(value, at: path, in: schemas)
        }
        try readValue(&reader)
        for action in KeyAction.allCases {
            access[action] = try reader.strings(action.rawValue)?.map(accounts.principal)
        }
        limits = try Rule.limits("limits", &reader)
        softLimits = try Rule.limits("softLimits", &reader)
        try checkLimits(reader.path)
        try reader.finish()
    }

    private static func pattern(_ text: String, _ path: JSONPath) throws(OptionFault) -> Pattern {
        do throws(StateError) { return try Pattern(text) } catch {
            throw OptionFault(path, error.message)
        }
    }

    private enum BackingName: String, CaseIterable { case sqlite, file, memory }

    private mutating func readStorage(_ reader: inout OptionReader) throws(OptionFault) {
        backing = try Rule.backing(of: keys, &reader)
        durability = try reader.string("durability") { text, path throws(OptionFault) in
            if let level = Durability(text) { return level }
            throw OptionFault(path, text, isNoneOf: Durability.allCases.map(\.description))
        }
        try readCommitInterval(&reader)
        expiry = try reader.duration("expire")
        if let expiry, expiry <= .zero {
            throw OptionFault(reader.path.member("expire"), "expected a time above 0")
        }
        lifetime = try reader.word("lifetime", of: Lifetime.self)
        if lifetime != nil, expiry != nil {
            throw OptionFault(
                reader.path.member("lifetime"),
                "a value ends at a time or with its writer: remove 'expire' or 'lifetime'"
            )
        }
        history = try Rule.history(&reader)
    }

    /// The times that `commitEvery` may name.
    private static let commitIntervals = Duration.milliseconds(10)...Duration.seconds(3_600)

    private mutating func readCommitInterval(_ reader: inout OptionReader) throws(OptionFault) {
        commitInterval = try reader.duration("commitEvery")
        let path = reader.path.member("commitEvery")
        if let commitInterval {
            guard durability == .interval else {
                throw OptionFault(path, "it needs durability: \"interval\" in the same rule")
            }
            guard Rule.commitIntervals.contains(commitInterval) else {
                throw OptionFault(path, "expected a time from 10ms to 1h")
            }
        }
        if durability == .interval, backing.map({ $0 != .sqlite }) ?? false {
            throw OptionFault(
                reader.path.member("durability"),
                "\"interval\" is for keys in the store; their rule has another backing"
            )
        }
    }

    private static func backing(
        of keys: Pattern,
        _ reader: inout OptionReader
    ) throws(OptionFault) -> KeyBacking? {
        let name = try reader.word("backing", of: BackingName.self)
        let directory = try reader.string("directory", Rule.directory)
        let isShared = try reader.bool("shared")
        if name != .file, directory != nil || isShared != nil {
            let option = directory == nil ? "shared" : "directory"
            throw OptionFault(
                reader.path.member(option),
                "it needs backing: \"file\" in the same rule"
            )
        }
        switch name {
        case nil: return nil
        case .sqlite: return .sqlite
        case .memory: return .memory
        case .file:
            return .file(
                directory: try Rule.directory(directory, of: keys, reader.path),
                isShared: isShared ?? false
            )
        }
    }

    private static func directory(_ text: String, _ path: JSONPath) throws(OptionFault) -> String {
        guard text.hasPrefix("/"), text.count > 1, text.utf8.allSatisfy({ $0 >= 0x20 }) else {
            throw OptionFault(path, "expected the absolute path of a directory, not \"\(text)\"")
        }
        return text
    }

    private static func directory(
        _ directory: String?,
        of keys: Pattern,
        _ path: JSONPath
    ) throws(OptionFault) -> String {
        guard let directory else {
            throw OptionFault(path, "backing: \"file\" needs a directory")
        }
        guard keys.kind != .glob else {
            throw OptionFault(
                path.member("backing"),
                "\"file\" needs a prefix or one key in 'keys', not a glob"
            )
        }
        return directory
    }

    private mutating func readValue(_ reader: inout OptionReader) throws(OptionFault) {
        let kind = keys.kind
        standard = try reader.read("default") { value, path throws(OptionFault) in
            guard kind == .key else {
                throw OptionFault(path, "a default needs one key in 'keys', not a pattern")
            }
            return try Rule.bytes(value, path)
        }
        isReadOnly = try reader.bool("readonly")
        isWriteOnce = try reader.bool("writeOnce")
    }

    /// The bytes of an entry with that value: a string has no quotes.
    private static func bytes(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) -> [UInt8] {
        if case .string(let text) = value { return Array(text.utf8) }
        do throws(StateError) { return try value.text() } catch {
            throw OptionFault(path, error.message)
        }
    }

    /// Refuses a limit of connections in a rule for some keys, and a soft limit of depth.
    private func checkLimits(_ path: JSONPath) throws(OptionFault) {
        for (name, limits) in [("limits", limits), ("softLimits", softLimits)] {
            guard limits[.connections] != nil, keys != .everything else { continue }
            throw OptionFault(
                path.member(name).member(KeyLimit.connections.rawValue),
                "connections are counted for each user, not for keys; move this limit to the rule for \"/\""
            )
        }
        if softLimits[.depth] != nil {
            throw OptionFault(
                path.member("softLimits").member(KeyLimit.depth.rawValue),
                "depth has no soft limit; use limits.depth, which refuses deeper values"
            )
        }
        try checkLifetimes(path)
    }

    /// Refuses a lifetime that another option of the rule forbids, and a soft limit of lifetimes.
    private func checkLifetimes(_ path: JSONPath) throws(OptionFault) {
        if softLimits[.ttl] != nil {
            throw OptionFault(
                path.member("softLimits").member(KeyLimit.ttl.rawValue),
                "ttl has no soft limit; use limits.ttl, which refuses longer times"
            )
        }
        guard let most = limits[.ttl] else { return }
        guard most > 0 else {
            throw OptionFault(
                path.member("limits").member(KeyLimit.ttl.rawValue),
                "expected a time above 0"
            )
        }
        if let expiry, expiry > .milliseconds(most) {
            throw OptionFault(
                path.member("expire"),
                "it is longer than limits.ttl of the same rule"
            )
        }
    }

    private static func limits(
        _ name: String,
        _ reader: inout OptionReader
    ) throws(OptionFault) -> [KeyLimit: Int64] {
        var limits: [KeyLimit: Int64] = [:]
        try reader.object(name) { reader throws(OptionFault) in
            for limit in KeyLimit.allCases { limits[limit] = try Rule.limit(limit, &reader) }
        }
        return limits
    }

    private static func limit(
        _ limit: KeyLimit,
        _ reader: inout OptionReader
    ) throws(OptionFault) -> Int64? {
        switch limit {
        case .valueBytes, .bytes: return try reader.byteCount(limit.rawValue)
        case .depth:
            let range = 0...JSONDocument.depthLimit
            return try reader.count(limit.rawValue, in: range).map { Int64($0) }
        case .ttl: return try reader.duration(limit.rawValue).map { Int64($0 / .milliseconds(1)) }
        default: return try reader.count(limit.rawValue).map { Int64($0) }
        }
    }
}
