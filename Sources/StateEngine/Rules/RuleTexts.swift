/// Where a rule stands in the configuration; two are equal if they are the same rule.
package struct RulePlace: Hashable, Sendable, CustomStringConvertible, ExpressibleByIntegerLiteral {
    /// From 0.
    package let index: Int
    /// From 1; 0 if it is not known.
    package let line: Int
    /// The file, if it is not the main one.
    package let file: String?

    package init(index: Int, line: Int = 0, file: String? = nil) {
        (self.index, self.line, self.file) = (index, line, file)
    }

    package init(integerLiteral index: Int) { self.init(index: index) }

    package static func == (left: RulePlace, right: RulePlace) -> Bool { left.index == right.index }

    package func hash(into hasher: inout Hasher) { hasher.combine(index) }

    /// The line, after the name of a file that is not the main one; empty if it is not known.
    package var source: String {
        guard line > 0 else { return "" }
        return file.map { "\($0):\(line)" } ?? String(line)
    }

    /// For messages: `rule 3, line 12`, or `rule 3, rules.d/net.json5:12`.
    package var description: String {
        let number = "rule \(index + 1)"
        guard line > 0 else { return number }
        return file == nil ? "\(number), line \(line)" : "\(number), \(source)"
    }
}

/// Describes rules to people.
package protocol RuleTexts: Sendable {
    /// The options that rules have for a key that matches the patterns with these indices, each
    /// from the rule that counts, in the order of their documentation.
    func explanation(_ matching: [Int]) -> [RuleOption]

    /// All rules as they are written.
    var descriptions: [RuleDescription] { get }
}

/// An option and its rule, for people.
package struct RuleOption: Hashable, Sendable {
    /// The name as it is written: `limits.valueBytes`.
    package var name: String
    /// The value as JSON, as it is written.
    package var value: String
    /// Nil if no rule has the option.
    package var rule: RulePlace?
    /// The pattern of the rule; empty if there is none.
    package var keys: [UInt8]
    /// The line of the rule, or the file of defaults; empty if neither is known.
    package var source: String

    package init(
        name: String,
        value: String,
        rule: RulePlace? = nil,
        keys: [UInt8] = [],
        source: String? = nil
    ) {
        (self.name, self.value, self.rule, self.keys) = (name, value, rule, keys)
        self.source = source ?? rule?.source ?? ""
    }
}

/// A rule as it is written, for people; one for each of its patterns.
package struct RuleDescription: Sendable {
    package var place: RulePlace
    /// One of its patterns.
    package var keys: [UInt8]
    /// Its options and their values as JSON.
    package var options: [(name: String, value: String)]

    package init(place: RulePlace, keys: [UInt8], options: [(name: String, value: String)]) {
        (self.place, self.keys, self.options) = (place, keys, options)
    }

    /// From 1, as in messages.
    package var number: Int { place.index + 1 }
}

extension KeyRules {
    /// The options for a key, for people.
    package func explanation(of key: Bytes) -> [RuleOption] { texts.explanation(matching(key)) }

    /// All rules as they are written, for people.
    package var descriptions: [RuleDescription] { texts.descriptions }
}
