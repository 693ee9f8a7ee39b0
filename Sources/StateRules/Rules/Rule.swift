package import StateEngine

/// What the configuration says of the keys of one pattern; an option that it does not name is nil.
package struct Rule: Sendable {
    /// Where it stands in the configuration, from 0.
    package let index: Int
    /// The keys that it is about.
    package let keys: Pattern
    package var backing: RuleBacking?
    package var durability: Durability?
    /// A value is dropped so long after it was set.
    package var expiry: Duration?
    package var schema: Schema?
    /// What an absent key is answered with; in a rule for one key only.
    package var standard: [UInt8]?
    /// Whether nothing may change the keys.
    package var isReadOnly: Bool?
    /// Whether a key may be set only while it is absent, and not deleted.
    package var isWriteOnce: Bool?
    package var access: [RuleAction: [RulePrincipal]] = [:]
    package var limits: [RuleLimit: Int64] = [:]
    /// Beyond these it is only logged.
    package var softLimits: [RuleLimit: Int64] = [:]
}

/// Where the values of a rule live.
package enum RuleBacking: Hashable, Sendable {
    case sqlite
    case memory
    /// One file each, below a directory; `isShared` where others may write to it.
    case file(directory: String, isShared: Bool)
}

/// What somebody does to keys.
package enum RuleAction: String, CaseIterable, Sendable {
    case read, write, watch, create, admin
}

/// Who may.
package enum RulePrincipal: Hashable, Sendable {
    case everybody
    /// Whoever created the entry.
    case owner
    case user(UInt32, name: String)
    case group(UInt32, name: String)
}

/// What of a rule's keys is limited.
package enum RuleLimit: String, CaseIterable, Sendable {
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
