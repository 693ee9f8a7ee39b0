public import StateModel
import StateWire

/// The daemon's configuration.
extension Client {
    /// An option that a reload changed.
    public struct OptionChange: Hashable, Sendable {
        /// The number of its rule, from 1; 0 for an option of the daemon.
        public let rule: Int64
        /// The pattern of the rule; empty for an option of the daemon.
        public let keys: [UInt8]
        /// Its name in the file: `limits.valueBytes`.
        public let option: String
        /// The old setting; nil for none.
        public let old: String?
        /// The new setting; nil for none.
        public let new: String?
    }

    /// The result of a reload.
    public struct Reload: Hashable, Sendable {
        /// The first revision that a commit under the new configuration can have.
        public let revision: Int64
        /// Changes that take effect now.
        public let changed: [OptionChange]
        /// Changes that take effect at the daemon's next start.
        public let needsRestart: [OptionChange]
    }

    /// What a reload would do.
    public struct ReloadPreview: Hashable, Sendable {
        /// Why it would be refused: each error with its place, and the line of the file.
        public let errors: [[String]]
        /// What can be used, but is probably not meant, in the same form.
        public let warnings: [[String]]
        /// Changes that a reload would make at once.
        public let changed: [OptionChange]
        /// Changes that only the next start would make.
        public let needsRestart: [OptionChange]
        /// How many stored values were checked under the new rules.
        public let checkedCount: Int64
        /// How many of them the new rules refuse.
        public let refusedCount: Int64
        /// The first 100 of those.
        public let refused: [RefusedValue]
    }

    /// An option that applies to a key.
    public struct ExplainedOption: Hashable, Sendable {
        /// Its name in the file: `limits.valueBytes`.
        public let name: String
        /// Its value, in JSON.
        public let value: String
        /// The number of the rule that sets it, from 1; 0 if none does.
        public let rule: Int64
        /// The pattern of that rule; empty if none sets it.
        public let keys: [UInt8]
        /// The line of that rule, after the name of a file of `rules.d`; empty if none sets it.
        public let source: String
    }

    /// A rule of the daemon's configuration.
    public struct Rule: Hashable, Sendable {
        /// Its number, from 1, as in messages.
        public let number: Int64
        /// Its pattern; a rule with several has a row for each.
        public let keys: [UInt8]
        /// Its options, as an object in JSON.
        public let options: String
        /// Its line, after the name of a file of `rules.d`.
        public let source: String
    }

    /// A stored value that a rule now refuses.
    public struct RefusedValue: Hashable, Sendable {
        /// The key.
        public let key: [UInt8]
        /// The revision that set the value.
        public let revision: Int64
        /// Why it is refused, and by which rule.
        public let issue: String
    }

    /// A file that the daemon refuses to read and leaves in place.
    public struct RefusedFile: Hashable, Sendable {
        /// Its path.
        public let path: String
        /// Why it is refused.
        public let issue: String
    }

    /// One page of what the rules refuse.
    public struct Refusals: Hashable, Sendable {
        /// How many values were checked.
        public let checkedCount: Int64
        /// Those that a rule refuses.
        public let values: [RefusedValue]
        /// Files that are refused; reported with the last page.
        public let files: [RefusedFile]
        /// The key after which the next page begins; nil if this is the last one.
        public let next: [UInt8]?
    }

    /// Makes the daemon reload its configuration; returns when it is in effect.
    ///
    /// - Returns: What has changed.
    /// - Throws: ``StateError/Code/invalidRequest`` if the file cannot be used, naming the place in it;
    ///   nothing has changed.
    @discardableResult
    public func reload() throws(StateError) -> Reload {
        let reply = try ask("STATE.RELOAD", [], .write)
        return Reload(
            revision: try reply.number("revision"),
            changed: try reply.rows("changed").map(OptionChange.init),
            needsRestart: try reply.rows("restart").map(OptionChange.init)
        )
    }

    /// What ``reload()`` would do now; nothing changes.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    /// - Complexity: The daemon checks each stored value, a few milliseconds at a time.
    public func previewOfReload() throws(StateError) -> ReloadPreview {
        let reply = try ask("STATE.RELOAD", [Array("DRYRUN".utf8)])
        func findings(_ name: String) -> [[String]] {
            (reply[name]?.elements ?? []).map { ($0.elements ?? []).compactMap(\.textValue) }
        }
        return ReloadPreview(
            errors: findings("errors"),
            warnings: findings("warnings"),
            changed: try reply.rows("changed").map(OptionChange.init),
            needsRestart: try reply.rows("restart").map(OptionChange.init),
            checkedCount: try reply.number("checked"),
            refusedCount: try reply.number("refused"),
            refused: try reply.rows("values").map(RefusedValue.init)
        )
    }

    /// The options that apply to a key, whether or not it exists; those that rules set come first.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func explain(_ key: Key) throws(StateError) -> [ExplainedOption] {
        try ask("STATE.EXPLAIN", [key.bytes]).rows().map { row throws(StateError) in
            ExplainedOption(
                name: try row.text(0),
                value: try row.text(1),
                rule: try row.number(2),
                keys: try row.bytes(3),
                source: row[4]?.textValue ?? ""
            )
        }
    }

    /// The rules of the daemon's configuration, in its order.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func rules() throws(StateError) -> [Rule] {
        try ask("STATE.RULES").rows().map { row throws(StateError) in
            Rule(
                number: try row.number(0),
                keys: try row.bytes(1),
                options: try row.text(2),
                source: row[3]?.textValue ?? ""
            )
        }
    }

    /// The default of a key: what readers get while nobody has set it.
    public struct DefaultValue: Hashable, Sendable {
        /// The key.
        public let key: [UInt8]
        /// The value.
        public let value: [UInt8]
        /// Where it is from, for people: a file of defaults, or a rule.
        public let origin: String
    }

    /// The defaults of the keys that match, in key order, whether or not the keys are set.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func defaults(of pattern: Pattern) throws(StateError) -> [DefaultValue] {
        try ask("STATE.DEFAULTS", [pattern.argument]).rows().map { row throws(StateError) in
            DefaultValue(
                key: try row.bytes(0),
                value: try row.bytes(1),
                origin: try row.text(2)
            )
        }
    }

    /// The stored values that a rule now refuses, in pages.
    ///
    /// Each page checks a number of values that delays nobody else.
    ///
    /// - Parameters:
    ///   - pattern: The keys to check.
    ///   - key: The ``Refusals/next`` of the page before; nil for the first.
    /// - Returns: A page, in key order; it may be empty without being the last.
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func refusals(
        of pattern: Pattern,
        after key: [UInt8]? = nil
    ) throws(StateError) -> Refusals {
        let after = key.map { [Array("AFTER".utf8), $0] } ?? []
        let reply = try ask("STATE.CHECK", [pattern.argument] + after)
        return Refusals(
            checkedCount: try reply.number("checked"),
            values: try reply.rows("refused").map(RefusedValue.init),
            files: try reply.rows("files").map { row throws(StateError) in
                RefusedFile(path: try row.text(0), issue: try row.text(1))
            },
            next: reply["next"]?.byteValue
        )
    }
}

extension Client.RefusedValue {
    fileprivate init(_ row: Fields) throws(StateError) {
        self.init(
            key: try row.bytes(0),
            revision: try row.number(1),
            issue: try row.text(2)
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
