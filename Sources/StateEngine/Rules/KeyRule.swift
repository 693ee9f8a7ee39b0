/// The options for the keys that match the same rules, each with the index of its rule.
package final class KeyRule: Sendable {
    /// An option and its source.
    package struct Setting<Value: Sendable>: Sendable {
        package var value: Value
        /// The rule that has it.
        package var rule: RulePlace

        package init(value: Value, rule: RulePlace) {
            self.value = value
            self.rule = rule
        }
    }

    /// The options, each from the most specific rule that names it.
    package struct Settings: Sendable {
        package var backing: Setting<KeyBacking>?
        package var durability: Setting<Durability>?
        /// Within which time storage must have a change, with durability `interval`.
        package var commitInterval: Setting<Duration>?
        package var expiry: Setting<Duration>?
        package var lifetime: Setting<Lifetime>?
        package var history: Setting<KeyRetention>?
        package var schema: Setting<any ValueSchema>?
        package var standard: Setting<[UInt8]>?
        package var isReadOnly: Setting<Bool>?
        package var isWriteOnce: Setting<Bool>?
        package var audit: Setting<AuditLevel>?
        package var access: [KeyAction: Setting<[Principal]>] = [:]
        package var limits: [KeyLimit: Setting<Int64>] = [:]
        package var softLimits: [KeyLimit: Setting<Int64>] = [:]

        /// No options: no rule matches.
        package init() {}
    }

    package let settings: Settings

    // Extracted from the settings once, because each write uses them.
    package let values: ValueRule
    package let access: AccessRule
    let quotas: QuotaRule
    /// Whether the keys are kept in memory only.
    let isInMemory: Bool
    /// The durability that a change needs before its writer is answered, if the writer does not
    /// specify it.
    package let durability: Durability
    /// Within how many nanoseconds storage must have a change; nil if its writer waits for that.
    package let delay: Int64?
    /// Whose end deletes a value; nil if nobody's does.
    let lifetime: Lifetime?
    /// The lifetime of a value, in milliseconds; nil if unlimited.
    let lifetimeMilliseconds: Int64?
    /// The longest lifetime of a value, in milliseconds; nil if unlimited.
    let lifetimeLimit: Setting<Int64>?
    /// How much of the history is kept; nil if the daemon's retention decides.
    let keptHistory: KeptHistory?

    /// - Parameters:
    ///   - settings: The options.
    ///   - quotas: The limits of amounts and rates among them.
    package init(_ settings: Settings, quotas: [Quota]) {
        self.settings = settings
        values = ValueRule(settings)
        access = AccessRule(settings)
        self.quotas = QuotaRule(quotas)
        isInMemory = settings.backing?.value == .memory
        let backing = settings.backing?.value ?? .sqlite
        let named = settings.durability?.value ?? (backing == .cluster ? .interval : .synced)
        // Whoever shares a commit with such a key waits for storage.
        durability = named == .interval || backing == .cluster ? .synced : named
        delay =
            named == .interval && [.sqlite, .cluster].contains(backing)
            ? Int64((settings.commitInterval?.value ?? .seconds(5)) / .nanoseconds(1)) : nil
        lifetime = settings.lifetime?.value
        lifetimeMilliseconds = settings.expiry.map { Int64($0.value / .milliseconds(1)) }
        lifetimeLimit = settings.limits[.ttl]
        keptHistory = settings.history.map { KeptHistory($0) }
    }
}

/// The values that a rule allows.
package protocol ValueSchema: Sendable {
    /// Checks a value.
    ///
    /// - Parameters:
    ///   - value: The bytes.
    ///   - depthLimit: The largest nesting depth of arrays and objects.
    /// - Returns: The issues, in the order of the value; empty if the value is valid.
    func issues(of value: Bytes, depthLimit: Int) -> [ValidationIssue]

    /// The only type that a value may have, as JSON Schema names it; nil if there are several.
    var typeName: String? { get }

    /// A range of whole numbers, written in digits only, that are all valid; nil if none is known.
    var plainIntegers: ClosedRange<Int64>? { get }
}

/// Where the values of a rule live.
package enum KeyBacking: Hashable, Sendable {
    case sqlite
    case memory
    /// One file each, below a directory; `isShared` if others may write to it.
    case file(directory: String, isShared: Bool)
    /// In the store, as a copy of what a cluster has.
    case cluster

    /// The options of a rule that take effect at the next start.
    package static let options: Set<String> = [
        "backing", "directory", "shared", "mode", "owner", "group", "trim", "stale", "staleAfter",
    ]

    /// The name in a configuration.
    package var name: String {
        switch self {
        case .sqlite: "sqlite"
        case .memory: "memory"
        case .file: "file"
        case .cluster: "cluster"
        }
    }
}

/// A limit on the keys of a rule.
package enum KeyLimit: String, CaseIterable, Sendable {
    /// The largest value, in bytes.
    case valueBytes
    /// The largest nesting depth of arrays and objects in a value under a schema.
    case depth
    /// The longest lifetime of a value, in milliseconds.
    case ttl
    /// The number of all keys of the rule.
    case keys
    /// Bytes of keys and values of all keys of the rule.
    case bytes
    /// Writes per second by one uid.
    case writesPerSecond
    /// Watches of one uid.
    case watches
    /// Connections of one uid.
    case connections
}
