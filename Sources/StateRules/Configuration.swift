package import StateEngine
package import StateJSON

/// The daemon's configuration: the options of a file, and defaults for the others.
package struct Configuration: Sendable {
    /// The socket file that the daemon creates.
    package struct Socket: Sendable {
        /// Where to listen; nil for an inherited socket or the user's default.
        package var path: String?
        /// Permission bits.
        package var mode: UInt32 = 0o600
        /// The gid; nil for the daemon's own.
        package var group: UInt32?
    }

    package var socket = Socket()
    /// The data directory; nil for the user's default.
    package var dataDirectory: String?
    /// The prefix below which the credentials of the daemon's unit become values; nil for none.
    package var credentials: String?
    /// The cluster that some keys are a copy of.
    package var cluster = Cluster()
    package var limits = ConfiguredLimits()
    /// How much history is kept.
    package var history = HistoryLimits()
    /// The rules for keys and changes.
    package private(set) var rules = RuleTable([])
    /// What can be used, but is probably not meant.
    package internal(set) var warnings: [OptionFault] = []

    package init() {}

    /// A file with rules beside the main one: an object with `rules` alone.
    ///
    /// A file with defaults is an object of keys and values, see ``NestedValues``.
    package struct Part: Sendable {
        /// For messages; nil for the main file.
        package let name: String?
        package let value: JSONValue
        /// The lines of its rules; empty if they are not known.
        package let lines: [Int]
        /// The path of the file, if it has defaults; nil if it has rules.
        package let defaultsFile: String?

        package init(
            name: String? = nil,
            value: JSONValue,
            lines: [Int] = [],
            defaultsFile: String? = nil
        ) {
            (self.name, self.value, self.lines) = (name, value, lines)
            self.defaultsFile = defaultsFile
        }
    }

    /// Reads a configuration.
    ///
    /// - Parameters:
    ///   - value: The content of the file.
    ///   - base: The options that the file does not set; its rules are not used.
    ///   - accounts: Finds users and groups by name.
    ///   - schemas: Finds the schemas in files beside it.
    /// - Throws: ``OptionFault``, with everything that cannot be used.
    package init(
        _ value: JSONValue,
        over base: Configuration = Configuration(),
        accounts: AccountDirectory,
        schemas: SchemaLibrary = SchemaLibrary()
    ) throws(OptionFault) {
        try self.init([Part(value: value)], over: base, accounts: accounts, schemas: schemas)
    }

    /// Reads a configuration in several files, of which the first has all options, the others rules;
    /// their rules are numbered on.
    package init(
        _ parts: [Part],
        over base: Configuration = Configuration(),
        accounts: AccountDirectory,
        schemas: SchemaLibrary = SchemaLibrary()
    ) throws(OptionFault) {
        self = base
        (rules, warnings) = (RuleTable([]), [])
        var (faults, rules): ([OptionFault], [Rule]) = ([], [])
        var defaults = ConfiguredDefaults()
        for (index, part) in parts.enumerated() {
            if let file = part.defaultsFile {
                faults += defaults.read(part.value, of: file, part: index)
                continue
            }
            let known = rules.count
            do throws(OptionFault) {
                var reader = try OptionReader(part.value, at: JSONPath())
                do throws(OptionFault) {
                    if index == 0 { try readOptions(&reader, accounts) }
                    _ = try reader.read("rules") { value, path throws(OptionFault) in
                        try Configuration.read(&rules, value, path, part, accounts, schemas)
                    }
                } catch { reader.note(error) }
                try reader.finish()
            } catch {
                faults += error.located(in: index, after: index == 0 ? 0 : known).all
            }
            for place in rules.indices.dropFirst(known) {
                rules[place].part = index
                rules[place].indexInPart = place - known
            }
        }
        self.rules = RuleTable(rules, defaults)
        let checks = RuleTableChecks(self.rules)
        warnings += rules.flatMap { rule in
            rule.warnings.map { $0.located(in: rule.part, after: rule.index - rule.indexInPart) }
        }
        warnings += checks.warnings
        if let fault = OptionFault(
            faults + checks.faults + ClusterChecks(rules, cluster, credentials: credentials).faults
        ) {
            throw fault
        }
    }

    private mutating func readOptions(
        _ reader: inout OptionReader,
        _ accounts: AccountDirectory
    ) throws(OptionFault) {
        // For editors.
        _ = try reader.string("$schema")
        // Who reads the files has used them.
        _ = try reader.read("layers") { value, path throws(OptionFault) in
            try value.strings(path).mapAll { (layer) throws(OptionFault) in
                try Configuration.path(layer.text, layer.path)
            }
        }
        try reader.object("socket") { reader throws(OptionFault) in
            try readSocket(&reader, accounts)
        }
        dataDirectory = try reader.string("data", Configuration.path) ?? dataDirectory
        credentials = try reader.string("credentials", Configuration.prefix) ?? credentials
        try reader.object("cluster") { reader throws(OptionFault) in
            try readCluster(&reader, accounts)
        }
        try reader.object("limits") { reader throws(OptionFault) in try readLimits(&reader) }
        try reader.object("history") { reader throws(OptionFault) in try readHistory(&reader) }
    }

    private static func path(_ text: String, _ path: JSONPath) throws(OptionFault) -> String {
        guard text.hasPrefix("/"), !text.utf8.contains(0) else {
            let kind = JSONValue.string(text).kindDescription
            throw OptionFault(path, "expected an absolute path, not \(kind)")
        }
        return text
    }

    private static func prefix(_ text: String, _ path: JSONPath) throws(OptionFault) -> String {
        guard text.hasSuffix("/"), (try? Key(String(text.dropLast()))) != nil else {
            let kind = JSONValue.string(text).kindDescription
            throw OptionFault(path, "expected a prefix such as \"app/secret/\", not \(kind)")
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
                    "expected a path of at most 107 bytes, not of \(text.utf8.count)"
                )
            }
            return text
        }
        let mode = try reader.string("mode") { text, path throws(OptionFault) in
            if let mode = Configuration.socketMode(text) { return mode }
            throw OptionFault(
                path,
                "expected octal permission bits in quotes, such as \"0660\", not \"\(text)\""
            )
        }
        socket.path = path ?? socket.path
        socket.mode = mode ?? socket.mode
        let group = try reader.string("group") { name, path throws(OptionFault) in
            try accounts.groupNumber(name, path, &warnings)
        }
        socket.group = (group ?? nil) ?? socket.group
    }

    /// Permission bits in octal that let the daemon use its own socket; nil for anything else.
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
            reader.note(
                "valueBytes",
                "expected at most \(Quantity.text(byteCount: Int64(most))): a value and its key must "
                    + "fit into limits.transactionBytes"
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
                reader.note(
                    name,
                    "expected at most \(Quantity.text(most)), not \(Quantity.text(time))"
                )
                return nil
            }
            return Int(time / .milliseconds(1))
        }
    }

    private mutating func readHistory(_ reader: inout OptionReader) throws(OptionFault) {
        history.age = try reader.duration("age") ?? history.age
        history.changeCount = try reader.count("changes") ?? history.changeCount
        history.byteCount = try reader.byteCount("bytes") ?? history.byteCount
    }

    /// Reads the rules of a file; those with faults are there as far as they could be read.
    private static func read(
        _ rules: inout [Rule],
        _ value: JSONValue,
        _ path: JSONPath,
        _ part: Part,
        _ accounts: AccountDirectory,
        _ schemas: SchemaLibrary
    ) throws(OptionFault) {
        var faults: [OptionFault] = []
        for (number, element) in try value.elements(path).enumerated() {
            let line = number < part.lines.count ? part.lines[number] : 0
            let place = RulePlace(index: rules.count, line: line, file: part.name)
            var rule = Rule(at: place)
            do throws(OptionFault) {
                try rule.read(element.value, at: element.path, accounts: accounts, schemas: schemas)
            } catch { faults += error.all }
            rules.append(rule)
        }
        if let fault = OptionFault(faults) { throw fault }
    }
}
