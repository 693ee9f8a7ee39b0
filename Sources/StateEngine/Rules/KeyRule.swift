/// The options for the keys that match the same rules, each with the index of its rule.
package final class KeyRule: Sendable {
    /// An option and its source.
    package struct Setting<Value: Sendable>: Sendable {
        package var value: Value
        /// The index of the rule in the configuration, from 0.
        package var rule: Int

        package init(value: Value, rule: Int) {
            self.value = value
            self.rule = rule
        }
    }

    /// The options, each from the most specific rule that names it.
    package struct Settings: Sendable {
        package var backing: Setting<KeyBacking>?
        package var durability: Setting<Durability>?
        package var expiry: Setting<Duration>?
        package var schema: Setting<any ValueSchema>?
        package var standard: Setting<[UInt8]>?
        package var isReadOnly: Setting<Bool>?
        package var isWriteOnce: Setting<Bool>?
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
    /// The lifetime of a value, in milliseconds; nil if unlimited.
    let lifetimeMilliseconds: Int64?

    /// - Parameters:
    ///   - settings: The options.
    ///   - quotas: The limits of amounts and rates among them.
    package init(_ settings: Settings, quotas: [Quota]) {
        self.settings = settings
        values = ValueRule(settings)
        access = AccessRule(settings)
        self.quotas = QuotaRule(quotas)
        isInMemory = settings.backing?.value == .memory
        durability = settings.durability?.value ?? .synced
        lifetimeMilliseconds = settings.expiry.map { Int64($0.value / .milliseconds(1)) }
    }
}
