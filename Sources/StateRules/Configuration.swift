package import StateEngine
package import StateJSON

/// What the daemon is to do: what a configuration file says, and the defaults of what it does not name.
package struct Configuration: Sendable {
    /// The socket file that the daemon makes.
    package struct Socket: Sendable {
        /// Where to listen; nil for an inherited socket or the user's own place.
        package var path: String?
        /// Permission bits.
        package var mode: UInt32 = 0o600
        /// The gid; nil for the daemon's own.
        package var group: UInt32?
    }

    package var socket = Socket()
    /// Where the values live; nil for the user's own place.
    package var dataDirectory: String?
    package var limits = ConfiguredLimits()
    /// How much of the past is kept.
    package var history = HistoryLimits()
    /// What is asked of each change.
    package private(set) var rules = RuleTable([])

    package init() {}

    /// Reads a configuration.
    ///
    /// - Parameters:
    ///   - value: What the file has.
    ///   - base: What holds where the file says nothing; of its rules nothing does.
    ///   - accounts: Finds users and groups by name.
    /// - Throws: ``OptionFault``, for the first thing that cannot be used.
    package init(
        _ value: JSONValue,
        over base: Configuration = Configuration(),
        accounts: AccountDirectory
    ) throws(OptionFault) {
        self = base
        rules = RuleTable([])
        var reader = try OptionReader(value, at: JSONPath())
        try reader.object("socket") { reader throws(OptionFault) in
            try readSocket(&reader, accounts)
        }
        dataDirectory = try reader.string("data", Configuration.path) ?? dataDirectory
        try reader.object("limits") { reader throws(OptionFault) in try readLimits(&reader) }
        try reader.object("history") { reader throws(OptionFault) in try readHistory(&reader) }
        _ = try reader.read("rules") { value, path throws(OptionFault) in
            try readRules(value, path, accounts)
        }
        try reader.finish()
    }

    private static func path(_ text: String, _ path: JSONPath) throws(OptionFault) -> String {
        guard text.hasPrefix("/"), !text.utf8.contains(0) else {
            let kind = JSONValue.string(text).kindDescription
            throw OptionFault(path, "an absolute path is wanted, not \(kind)")
        }
        return text
    }

    private mutating func readSocket(
        _ reader: inout OptionReader,
        _ accounts: AccountDirectory
    ) throws(OptionFault) {
        let path = try reader.string("path") { text, path throws(OptionFault) in
            let text = try Configuration.path(text, path)
            // unix(7)
            guard text.utf8.count <= 107 else {
                throw OptionFault(
                    path,
                    "a path of at most 107 bytes is wanted, not one of \(text.utf8.count)"
                )
            }
            return text
        }
        let mode = try reader.string("mode") { text, path throws(OptionFault) in
            if let mode = Configuration.socketMode(text) { return mode }
            throw OptionFault(
                path,
                "octal permission bits in quotes are wanted, such as \"0660\", not \"\(text)\""
            )
        }
        socket.path = path ?? socket.path
        socket.mode = mode ?? socket.mode
        socket.group = try reader.string("group", accounts.groupNumber) ?? socket.group
    }

    /// Permission bits in octal, with which the daemon can use its own socket; nil for all else.
    package static func socketMode(_ text: String) -> UInt32? {
        guard let mode = UInt32(text, radix: 8), mode <= 0o777, mode & 0o600 == 0o600 else {
            return nil
        }
        return mode
    }

    private mutating func readLimits(_ reader: inout OptionReader) throws(OptionFault) {
        for option in LimitOption.allCases {
            if let limit = try Configuration.limit(option, &reader) { limits[option] = limit }
        }
        let most = limits.largestValueByteCount
        if reader.has("valueBytes"), limits[.valueBytes] > most {
            throw OptionFault(
                reader.path.member("valueBytes"),
                "at most \(most) is wanted: a transaction has to hold a value and its key"
            )
        }
    }

    private static func limit(
        _ option: LimitOption,
        _ reader: inout OptionReader
    ) throws(OptionFault) -> Int? {
        let (name, range) = (option.rawValue, option.range)
        switch option.unit {
        case .things: return try reader.count(name, in: range)
        case .bytes:
            let bounds = Int64(range.lowerBound)...Int64(range.upperBound)
            return try reader.byteCount(name, in: bounds).map { Int($0) }
        case .milliseconds:
            guard let time = try reader.duration(name) else { return nil }
            let most = Duration.milliseconds(range.upperBound)
            guard time <= most else {
                throw OptionFault(
                    reader.path.member(name),
                    "at most \(Quantity.text(most)) is wanted, not \(Quantity.text(time))"
                )
            }
            return Int(time / .milliseconds(1))
        }
    }

    private mutating func readHistory(_ reader: inout OptionReader) throws(OptionFault) {
        history.age = try reader.duration("age") ?? history.age
        history.changeCount = try reader.count("changes") ?? history.changeCount
        history.byteCount = try reader.byteCount("bytes") ?? history.byteCount
    }

    private mutating func readRules(
        _ value: JSONValue,
        _ path: JSONPath,
        _ accounts: AccountDirectory
    ) throws(OptionFault) {
        let elements = try value.elements(path).enumerated()
        rules = RuleTable(
            try elements.map { (index, element) throws(OptionFault) in
                try Rule(element.value, at: element.path, index: index, accounts: accounts)
            }
        )
        try Configuration.check(rules, path)
    }
}
