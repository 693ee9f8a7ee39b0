/// Describes rules to people.
package protocol RuleTexts: Sendable {
    /// The options that the rules with these indices have for a key that matches them, each from
    /// the rule that counts, in the order of their documentation.
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
    /// The number of the rule, from 1, as in messages; 0 if no rule has the option.
    package var rule: Int
    /// The pattern of the rule; empty if there is none.
    package var keys: [UInt8]

    package init(name: String, value: String, rule: Int, keys: [UInt8]) {
        (self.name, self.value, self.rule, self.keys) = (name, value, rule, keys)
    }
}

/// A rule as it is written, for people.
package struct RuleDescription: Sendable {
    /// From 1, as in messages.
    package var number: Int
    /// Its pattern.
    package var keys: [UInt8]
    /// Its options and their values as JSON.
    package var options: [(name: String, value: String)]

    package init(number: Int, keys: [UInt8], options: [(name: String, value: String)]) {
        (self.number, self.keys, self.options) = (number, keys, options)
    }
}

extension KeyRules {
    /// All rules as they are written, for people.
    package var descriptions: [RuleDescription] { texts.descriptions }
}
