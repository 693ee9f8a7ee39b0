/// What a keyspace asks of the configuration.
///
/// Every call comes under the keyspace's lock.
package protocol KeyRules: AnyObject, Sendable {
    /// What holds for a key; nil where no rule matches.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, but for the rules that begin as it does.
    func rule(for key: Bytes) -> KeyRule?

    /// Whether some rule says who may do what.
    var limitsAccess: Bool { get }

    /// The options that rules say of a key, each from the rule that counts, in the order of their documentation.
    func explanation(of key: Bytes) -> [RuleOption]

    /// All rules as they stand, for people.
    var descriptions: [RuleDescription] { get }
}

/// An option and the rule that says it, for people.
package struct RuleOption: Hashable, Sendable {
    /// As it is written: `limits.valueBytes`.
    package var name: String
    /// JSON, as it is written.
    package var value: String
    /// From 1, as messages count; 0 where no rule says it.
    package var rule: Int
    /// The pattern of the rule; empty where there is none.
    package var keys: [UInt8]

    package init(name: String, value: String, rule: Int, keys: [UInt8]) {
        (self.name, self.value, self.rule, self.keys) = (name, value, rule, keys)
    }
}

/// A rule as it is written, for people.
package struct RuleDescription: Sendable {
    /// From 1, as messages count.
    package var number: Int
    /// Its pattern.
    package var keys: [UInt8]
    /// Its options and their values as JSON.
    package var options: [(name: String, value: String)]

    package init(number: Int, keys: [UInt8], options: [(name: String, value: String)]) {
        (self.number, self.keys, self.options) = (number, keys, options)
    }
}

/// What a value may be, as a rule says it.
package protocol ValueSchema: Sendable {
    /// What is wrong with a value; nothing where it may be.
    ///
    /// - Parameters:
    ///   - value: The bytes.
    ///   - depthLimit: As deep may arrays and objects be nested.
    /// - Returns: An issue each, in the order in which they stand in the value.
    func issues(of value: Bytes, depthLimit: Int) -> [ValidationIssue]

    /// The one type that a value has to be of, in the words of JSON Schema; nil where there are several.
    var typeName: String? { get }
}

/// Where the values of a rule live.
package enum KeyBacking: Hashable, Sendable {
    case sqlite
    case memory
    /// One file each, below a directory; `isShared` where others may write to it.
    case file(directory: String, isShared: Bool)

    /// The word for it in a configuration.
    package var name: String {
        switch self {
        case .sqlite: "sqlite"
        case .memory: "memory"
        case .file: "file"
        }
    }
}

/// What of a rule's keys is limited.
package enum KeyLimit: String, CaseIterable, Sendable {
    /// The largest value, in bytes.
    case valueBytes
    /// As deep may arrays and objects be nested in a value under a schema.
    case depth
    /// Keys, all those of the rule together.
    case keys
    /// Bytes of keys and values, all those of the rule together.
    case bytes
    /// Writes in a second, of one uid.
    case writesPerSecond
    /// Watches of one uid.
    case watches
    /// Connections of one uid.
    case connections
}
