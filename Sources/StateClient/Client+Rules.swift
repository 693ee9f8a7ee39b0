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
        let reply = try ask("STATE.RELOAD", [], .write)
        return Reload(
            revision: try reply.number("revision"),
            changed: try reply.rows("changed").map(OptionChange.init),
            needsRestart: try reply.rows("restart").map(OptionChange.init)
        )
    }

    /// The options that hold for a key, whether or not it is present, first those that rules say.
    ///
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    public func explain(_ key: Key) throws(StateError) -> [ExplainedOption] {
        try ask("STATE.EXPLAIN", [key.bytes]).rows().map { row throws(StateError) in
            ExplainedOption(
                name: try row.text(0),
                value: try row.text(1),
                rule: try row.number(2),
                keys: try row.bytes(3)
            )
        }
    }

    /// The rules of the daemon's configuration, in its order.
    ///
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    public func rules() throws(StateError) -> [Rule] {
        try ask("STATE.RULES").rows().map { row throws(StateError) in
            Rule(number: try row.number(0), keys: try row.bytes(1), options: try row.text(2))
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
        let after = key.map { [Array("AFTER".utf8), $0] } ?? []
        let reply = try ask("STATE.CHECK", [pattern.argument] + after)
        return Refusals(
            checkedCount: try reply.number("checked"),
            values: try reply.rows("refused").map { row throws(StateError) in
                RefusedValue(
                    key: try row.bytes(0),
                    revision: try row.number(1),
                    issue: try row.text(2)
                )
            },
            files: try reply.rows("files").map { row throws(StateError) in
                RefusedFile(path: try row.text(0), issue: try row.text(1))
            },
            next: reply["next"]?.byteValue
        )
    }
}

extension Client.OptionChange {
    fileprivate init(_ row: Fields) throws(StateError) {
        self.init(
            rule: try row.number(0),
            keys: try row.bytes(1),
            option: try row.text(2),
            old: row[3]?.textValue,
            new: row[4]?.textValue
        )
    }
}
