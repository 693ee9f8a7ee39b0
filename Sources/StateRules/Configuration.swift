import StateEngine
package import StateJSON

/// What a configuration file says; an option that it does not name is nil, and has the daemon's default.
package struct Configuration: Sendable {
    package private(set) var socketPath: String?
    /// Permission bits.
    package private(set) var socketMode: UInt32?
    /// The gid, and the name.
    package private(set) var socketGroup: (number: UInt32, name: String)?
    package private(set) var dataDirectory: String?
    package private(set) var limits: [String: Int64] = [:]
    package private(set) var historyAge: Duration?
    package private(set) var historyChangeCount: Int?
    package private(set) var historyByteCount: Int64?
    package private(set) var rules = RuleTable([])

    /// The options below `limits`, with their defaults and what they may be: numbers, bytes, and milliseconds.
    package static let limitOptions: [(name: String, standard: Int64, range: ClosedRange<Int64>)] =
        [
            ("valueBytes", 8 << 20, 1...512 << 20), ("clients", 10_000, 1...1_000_000),
            ("watches", 1_000, 1...1_000_000), ("steps", 10_000, 1...1_000_000),
            ("globs", 100, 0...1_000_000), ("outputBytes", 8 << 20, 64 << 10...1 << 40),
            ("inputBytes", 256 << 20, 64 << 10...1 << 40),
            ("queueBytes", 64 << 20, 64 << 10...1 << 40),
            ("transactionBytes", 64 << 20, 64 << 10...1 << 40),
            ("replyBytes", 256 << 20, 64 << 10...1 << 40),
            ("files", 100_000, 1...100_000_000), ("reserveBytes", 10 << 20, 0...1 << 40),
            ("checkEvery", 86_400_000, 0...31_536_000_000),
            ("memoryBytes", 512 << 20, 16 << 20...1 << 40),
            ("frameTimeout", 60_000, 0...86_400_000), ("rest", 500, 0...10_000),
        ]

    package init() {}

    /// - Throws: ``OptionFault``, for the first thing that cannot be used.
    package init(_ value: JSONValue, accounts: AccountDirectory) throws(OptionFault) {
        var reader = try OptionReader(value, at: JSONPath())
        _ = try reader.read("socket") { value, path throws(OptionFault) in
            try readSocket(value, path, accounts)
        }
        dataDirectory = try reader.read("data", Configuration.path)
        _ = try reader.read("limits") { value, path throws(OptionFault) in
            try readLimits(value, path)
        }
        _ = try reader.read("history") { value, path throws(OptionFault) in
            try readHistory(value, path)
        }
        _ = try reader.read("rules") { value, path throws(OptionFault) in
            try readRules(value, path, accounts)
        }
        try reader.finish()
    }

    private static func path(_ value: JSONValue, _ path: JSONPath) throws(OptionFault) -> String {
        let text = try value.option(path, as: String.self)
        guard text.hasPrefix("/"), !text.utf8.contains(0) else {
            throw OptionFault(path, "an absolute path is wanted, not \(value.kindDescription)")
        }
        return text
    }

    private mutating func readSocket(
        _ value: JSONValue,
        _ path: JSONPath,
        _ accounts: AccountDirectory
    ) throws(OptionFault) {
        var reader = try OptionReader(value, at: path)
        socketPath = try reader.read("path") { value, path throws(OptionFault) in
            let text = try Configuration.path(value, path)
            // unix(7)
            guard text.utf8.count <= 107 else {
                throw OptionFault(
                    path,
                    "a path of at most 107 bytes is wanted, not one of \(text.utf8.count)"
                )
            }
            return text
        }
        socketMode = try reader.read("mode") { value, path throws(OptionFault) in
            let text = try value.option(path, as: String.self)
            guard let mode = UInt32(text, radix: 8), mode <= 0o777, mode & 0o600 == 0o600 else {
                throw OptionFault(
                    path,
                    "octal permission bits in quotes are wanted, such as \"0660\", not \"\(text)\""
                )
            }
            return mode
        }
        socketGroup = try reader.read("group") { value, path throws(OptionFault) in
            let name = try value.option(path, as: String.self)
            guard let number = UInt32(name) ?? accounts.group(name) else {
                throw OptionFault(path, "there is no group \"\(name)\" on this machine")
            }
            return (number, name)
        }
        try reader.finish()
    }

    private mutating func readLimits(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) {
        var reader = try OptionReader(value, at: path)
        for (name, _, range) in Configuration.limitOptions {
            limits[name] = try reader.read(name) { value, path throws(OptionFault) in
                try Configuration.limit(name, value, path, range)
            }
        }
        try reader.finish()
        let standard = Configuration.limitOptions.first { $0.name == "transactionBytes" }?.standard
        let most = (limits["transactionBytes"] ?? standard ?? 0) - Int64(Key.maximumByteCount)
        if let byteCount = limits["valueBytes"], byteCount > most {
            throw OptionFault(
                path.member("valueBytes"),
                "at most \(most) is wanted: a transaction has to hold a value and its key"
            )
        }
    }

    private static func limit(
        _ name: String,
        _ value: JSONValue,
        _ path: JSONPath,
        _ range: ClosedRange<Int64>
    ) throws(OptionFault) -> Int64 {
        if name.hasSuffix("Bytes") { return try value.byteCount(path, in: range) }
        guard name.hasSuffix("Timeout") || ["rest", "checkEvery"].contains(name) else {
            return Int64(
                try value.count(path, in: Int(range.lowerBound)...Int(range.upperBound))
            )
        }
        let time = try value.duration(path)
        let most = Duration.milliseconds(range.upperBound)
        guard time <= most else {
            throw OptionFault(
                path,
                "at most \(Quantity.text(most)) is wanted, not \(Quantity.text(time))"
            )
        }
        return Int64(time / .milliseconds(1))
    }

    private mutating func readHistory(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) {
        var reader = try OptionReader(value, at: path)
        historyAge = try reader.read("age") { value, path throws(OptionFault) in
            try value.duration(path)
        }
        historyChangeCount = try reader.read("changes") { value, path throws(OptionFault) in
            try value.count(path, in: 0...Int.max)
        }
        historyByteCount = try reader.read("bytes") { value, path throws(OptionFault) in
            try value.byteCount(path, in: 0...Int64.max)
        }
        try reader.finish()
    }

    private mutating func readRules(
        _ value: JSONValue,
        _ path: JSONPath,
        _ accounts: AccountDirectory
    ) throws(OptionFault) {
        var rules: [Rule] = []
        for (index, element) in try value.elements(path).enumerated() {
            rules.append(
                try Rule(element.value, at: element.path, index: index, accounts: accounts)
            )
        }
        self.rules = RuleTable(rules)
        try Configuration.check(self.rules, path)
    }
}
