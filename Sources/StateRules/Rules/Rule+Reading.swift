import StateEngine
package import StateJSON

extension Rule {
    /// Reads a rule of a configuration.
    ///
    /// - Throws: ``OptionFault``, for everything that is wrong; the rule then has the other options.
    package mutating func read(
        _ value: JSONValue,
        at path: JSONPath,
        accounts: AccountDirectory,
        schemas: SchemaLibrary
    ) throws(OptionFault) {
        var reader = try OptionReader(value, at: path)
        source = value
        do throws(OptionFault) { try read(&reader, accounts, schemas) } catch { reader.note(error) }
        try reader.finish()
    }

    private mutating func read(
        _ reader: inout OptionReader,
        _ accounts: AccountDirectory,
        _ schemas: SchemaLibrary
    ) throws(OptionFault) {
        keys = try reader.read("keys", Rule.patterns) ?? []
        if !reader.has("keys") {
            let message = "'keys' is missing; expected a key, a prefix that ends in /, or a glob"
            reader.note(OptionFault(reader.path, message))
        }
        for pattern in keys where pattern.kind != .key && pattern.hasEmptyLevel {
            let message = "\"\(pattern)\" matches only keys with nothing between two slashes"
            warnings.append(OptionFault(reader.path.member("keys"), message))
        }
        try readStorage(&reader, accounts)
        schema = try reader.read("schema") { value, path throws(OptionFault) in
            try Schema(value, at: path, in: schemas)
        }
        warnings += schema?.warnings ?? []
        try readValue(&reader)
        for action in KeyAction.allCases {
            access[action] = try reader.read(action.rawValue) { value, path throws(OptionFault) in
                try value.elements(path).mapAll { (element) throws(OptionFault) in
                    try accounts.principal(element.value, element.path, &warnings)
                }.compactMap(\.self)
            }
        }
        limits = try Rule.limits("limits", &reader)
        softLimits = try Rule.limits("softLimits", &reader)
        checkLimits(&reader)
    }

    /// Reads `keys`: a pattern, or several.
    private static func patterns(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) -> [Pattern] {
        if case .string(let text) = value { return [try pattern(text, path)] }
        guard case .array(let elements) = value, !elements.isEmpty else {
            throw OptionFault(
                path,
                "expected a key, a prefix or a glob in quotes, or several in [ ], not "
                    + (value == .array([]) ? "an empty array" : value.kindDescription)
            )
        }
        var known: Set<[UInt8]> = []
        return try value.strings(path).mapAll { (element) throws(OptionFault) in
            let pattern = try pattern(element.text, element.path)
            guard known.insert(pattern.bytes).inserted else {
                throw OptionFault(element.path, "this pattern is in the list already")
            }
            return pattern
        }
    }

    private static func pattern(_ text: String, _ path: JSONPath) throws(OptionFault) -> Pattern {
        let pattern: Pattern
        do throws(StateError) { pattern = try Pattern(text) } catch {
            throw OptionFault(path, error.message)
        }
        guard pattern.kind == .glob, GlobShape(pattern).tail.last == UInt8(ascii: "/") else {
            return pattern
        }
        let end = pattern.literal.lastIndex(of: UInt8(ascii: "/")) ?? 0
        let prefix = "\(String(decoding: pattern.literal[..<end], as: UTF8.self))/"
        throw OptionFault(
            path,
            "\"\(text)\" matches no key, because no key ends in /; write \"\(text)*\" or \"\(prefix)\""
        )
    }

    private enum BackingName: String, CaseIterable { case sqlite, file, memory, cluster }

    private mutating func readStorage(
        _ reader: inout OptionReader,
        _ accounts: AccountDirectory
    ) throws(OptionFault) {
        backing = try readBacking(&reader)
        try readForm(&reader, accounts)
        durability = try reader.string("durability") { text, path throws(OptionFault) in
            if let level = Durability(text) { return level }
            throw OptionFault(path, text, isNoneOf: Durability.allCases.map(\.description))
        }
        try readCommitInterval(&reader)
        expiry = try reader.duration("expire")
        if let expiry, expiry <= .zero { reader.note("expire", "expected a time above 0") }
        lifetime = try reader.word("lifetime", of: Lifetime.self)
        if lifetime != nil, expiry != nil {
            reader.note(
                "lifetime",
                "a value ends at a time or with its writer: remove 'expire' or 'lifetime'"
            )
        }
        history = try Rule.history(&reader)
        try readCluster(&reader)
    }

    /// The times that `commitEvery` may name.
    private static let commitIntervals = Duration.milliseconds(10)...Duration.seconds(3_600)

    private mutating func readCommitInterval(_ reader: inout OptionReader) throws(OptionFault) {
        commitInterval = try reader.duration("commitEvery")
        if let commitInterval {
            if !isDeferring {
                reader.note("commitEvery", "it needs durability: \"interval\" in the same rule")
            }
            if !Rule.commitIntervals.contains(commitInterval) {
                reader.note("commitEvery", "expected a time from 10ms to 1h")
            }
        }
        if isDeferring, backing.map({ $0 != .sqlite && $0 != .cluster }) ?? false {
            reader.note(
                "durability",
                "\"interval\" is for keys in the store; their rule has another backing"
            )
        }
    }

    private mutating func readBacking(
        _ reader: inout OptionReader
    ) throws(OptionFault) -> KeyBacking? {
        let name = try reader.word("backing", of: BackingName.self)
        let directory = try reader.string("directory", Rule.directory)
        let isShared = try reader.bool("shared")
        if name != .file, directory != nil || isShared != nil {
            let option = directory == nil ? "shared" : "directory"
            reader.note(option, "it needs backing: \"file\" in the same rule")
        }
        switch name {
        case nil: return nil
        case .sqlite: return .sqlite
        case .memory: return .memory
        case .cluster: return .cluster
        case .file:
            checkKeysOfFiles(&reader)
            guard let directory else {
                if !reader.has("directory") {
                    reader.note(OptionFault(reader.path, "backing: \"file\" needs a directory"))
                }
                return nil
            }
            return .file(directory: directory, isShared: isShared ?? false)
        }
    }

    private static func directory(_ text: String, _ path: JSONPath) throws(OptionFault) -> String {
        guard text.hasPrefix("/"), text.count > 1, text.utf8.allSatisfy({ $0 >= 0x20 }) else {
            throw OptionFault(path, "expected the absolute path of a directory, not \"\(text)\"")
        }
        return text
    }

    private func checkKeysOfFiles(_ reader: inout OptionReader) {
        if keys.count > 1 {
            reader.note("backing", "\"file\" needs a rule of its own for each prefix and each key")
        } else if keys.first?.kind == .glob {
            reader.note("backing", "\"file\" needs a prefix or one key in 'keys', not a glob")
        }
    }

    private mutating func readValue(_ reader: inout OptionReader) throws(OptionFault) {
        // Keys that could not be read may be one.
        let isOneKey = keys.isEmpty || keys.count == 1 && keys[0].kind == .key
        standard = try reader.read("default") { value, path throws(OptionFault) in
            guard isOneKey else {
                throw OptionFault(path, "a default needs one key in 'keys', not a pattern")
            }
            return try Rule.bytes(value, path)
        }
        isReadOnly = try reader.bool("readonly")
        isWriteOnce = try reader.bool("writeOnce")
        audit = try reader.read("audit") { value, path throws(OptionFault) in
            switch value {
            case .bool(let isOn): return isOn ? .changes : .nothing
            case .string("reads"): return .reads
            default: throw OptionFault(path, "expected true, false or \"reads\"")
            }
        }
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

    /// Refuses a limit of connections in a rule for some keys, and limits that another option of
    /// the rule forbids.
    private func checkLimits(_ reader: inout OptionReader) {
        func note(_ group: String, _ limit: KeyLimit, _ message: String) {
            let path = reader.path.member(group).member(limit.rawValue)
            reader.note(OptionFault(path, message))
        }
        for (name, limits) in [("limits", limits), ("softLimits", softLimits)]
        where limits[.connections] != nil && keys != [.everything] && !keys.isEmpty {
            note(
                name,
                .connections,
                "connections are counted for each user, not for keys; move this limit to the rule for \"/\""
            )
        }
        if softLimits[.depth] != nil {
            note(
                "softLimits",
                .depth,
                "depth has no soft limit; use limits.depth, which refuses deeper values"
            )
        }
        if softLimits[.ttl] != nil {
            note(
                "softLimits",
                .ttl,
                "ttl has no soft limit; use limits.ttl, which refuses longer times"
            )
        }
        guard let most = limits[.ttl] else { return }
        if most <= 0 { note("limits", .ttl, "expected a time above 0") }
        if let expiry, expiry > .milliseconds(most) {
            reader.note("expire", "it is longer than limits.ttl of the same rule")
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

extension Pattern {
    /// Whether two slashes follow each other.
    fileprivate var hasEmptyLevel: Bool {
        let slash = UInt8(ascii: "/")
        return zip(bytes, bytes.dropFirst()).contains { $0 == slash && $1 == slash }
    }
}
