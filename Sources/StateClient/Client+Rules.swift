public import StateModel
import StateWire

/// What the daemon's configuration says.
extension Client {
    /// An option that a reload has changed.
    public struct OptionChange: Hashable, Sendable {
        /// The number of its rule, from 1; 0 for an option of the daemon.
        public let rule: Int64
        /// The pattern of the rule; empty where there is none.
        public let keys: [UInt8]
        /// As it is written: `limits.valueBytes`.
        public let option: String
        /// What was said before; nil for nothing.
        public let old: String?
        /// What is said now.
        public let new: String?
    }

    /// What a reload has changed.
    public struct Reload: Hashable, Sendable {
        /// The first revision that a commit under the new configuration may have.
        public let revision: Int64
        /// What holds from now on.
        public let changed: [OptionChange]
        /// What is said otherwise now, and holds from the daemon's next start.
        public let needsRestart: [OptionChange]
    }

    /// An option that holds for a key.
    public struct ExplainedOption: Hashable, Sendable {
        /// As it is written: `limits.valueBytes`.
        public let name: String
        /// What it is, in JSON.
        public let value: String
        /// The number of the rule that says it, from 1; 0 where none does.
        public let rule: Int64
        /// The pattern of that rule; empty where there is none.
        public let keys: [UInt8]
    }

    /// A rule of the daemon's configuration.
    public struct Rule: Hashable, Sendable {
        /// From 1, as messages count.
        public let number: Int64
        /// Its pattern.
        public let keys: [UInt8]
        /// Its options, as an object in JSON.
        public let options: String
    }

    /// A stored value that a rule refuses now.
    public struct RefusedValue: Hashable, Sendable {
        /// The key.
        public let key: [UInt8]
        /// The revision that set the value.
        public let revision: Int64
        /// What is wrong with it, and which rule says so.
        public let issue: String
    }

    /// A file that the daemon leaves where it is and does not take.
    public struct RefusedFile: Hashable, Sendable {
        /// Where it lies.
        public let path: String
        /// What is wrong with it.
        public let issue: String
    }

    /// Some of what the rules refuse.
    public struct Refusals: Hashable, Sendable {
        /// How many values were looked at.
        public let checkedCount: Int64
        /// Those that a rule refuses.
        public let values: [RefusedValue]
        /// Files that are refused; told with the last page.
        public let files: [RefusedFile]
        /// Behind which key the next page begins; nil where this is the last one.
        public let next: [UInt8]?
    }

    /// Has the daemon read its configuration again, and returns when that holds.
    ///
    /// - Returns: What has changed.
    /// - Throws: ``StateError/Code/err``, where the file cannot be used, naming the place in it; everything is as it was.
    @discardableResult
    public func reload() throws(StateError) -> Reload {
        let reply = try call([Array("STATE.RELOAD".utf8)], [.write, .needsRESP3])
        guard let revision = reply["revision"]?.integerValue else {
            throw Self.unexpected("STATE.RELOAD")
        }
        return Reload(
            revision: revision,
            changed: try Self.changes(reply["changed"]),
            needsRestart: try Self.changes(reply["restart"])
        )
    }

    private static func changes(_ reply: Reply?) throws(StateError) -> [OptionChange] {
        try rows(reply, count: 5, "STATE.RELOAD") { row in
            guard let rule = row[0].integerValue, let keys = row[1].byteValue,
                let option = row[2].textValue
            else { return nil }
            return OptionChange(
                rule: rule,
                keys: keys,
                option: option,
                old: row[3].textValue,
                new: row[4].textValue
            )
        }
    }

    /// The options that hold for a key, whether or not it is present, first those that rules say.
    ///
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    public func explain(_ key: Key) throws(StateError) -> [ExplainedOption] {
        let reply = try call([Array("STATE.EXPLAIN".utf8), key.bytes], .needsRESP3)
        return try Self.rows(reply, count: 4, "STATE.EXPLAIN") { row in
            guard let name = row[0].textValue, let value = row[1].textValue,
                let rule = row[2].integerValue, let keys = row[3].byteValue
            else { return nil }
            return ExplainedOption(name: name, value: value, rule: rule, keys: keys)
        }
    }

    /// The rules of the daemon's configuration, in its order.
    ///
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    public func rules() throws(StateError) -> [Rule] {
        let reply = try call([Array("STATE.RULES".utf8)], .needsRESP3)
        return try Self.rows(reply, count: 3, "STATE.RULES") { row in
            guard let number = row[0].integerValue, let keys = row[1].byteValue,
                let options = row[2].textValue
            else { return nil }
            return Rule(number: number, keys: keys, options: options)
        }
    }

    /// The stored values that a rule refuses now, a page at a time: the daemon looks at as many as keep nobody waiting.
    ///
    /// - Parameters:
    ///   - pattern: Which keys.
    ///   - key: Where the last page says that the next one begins; nil for the first.
    /// - Returns: A page, in key order; it may be empty and not the last.
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    public func refusals(
        of pattern: Pattern,
        after key: [UInt8]? = nil
    ) throws(StateError) -> Refusals {
        var arguments = [Array("STATE.CHECK".utf8), pattern.argument]
        if let key { arguments += [Array("AFTER".utf8), key] }
        let reply = try call(arguments, .needsRESP3)
        guard let count = reply["checked"]?.integerValue, let next = reply["next"] else {
            throw Self.unexpected("STATE.CHECK")
        }
        return Refusals(
            checkedCount: count,
            values: try Self.rows(reply["refused"], count: 3, "STATE.CHECK") { row in
                guard let key = row[0].byteValue, let revision = row[1].integerValue,
                    let issue = row[2].textValue
                else { return nil }
                return RefusedValue(key: key, revision: revision, issue: issue)
            },
            files: try Self.rows(reply["files"], count: 2, "STATE.CHECK") { row in
                guard let path = row[0].textValue, let issue = row[1].textValue else { return nil }
                return RefusedFile(path: path, issue: issue)
            },
            next: next.byteValue
        )
    }

    private static func rows<Row>(
        _ reply: Reply?,
        count: Int,
        _ verb: String,
        _ read: ([Reply]) -> Row?
    ) throws(StateError) -> [Row] {
        guard let elements = reply?.elements else { throw unexpected(verb) }
        var rows: [Row] = []
        for element in elements {
            guard let parts = element.elements, parts.count >= count, let row = read(parts) else {
                throw unexpected(verb)
            }
            rows.append(row)
        }
        return rows
    }
}
