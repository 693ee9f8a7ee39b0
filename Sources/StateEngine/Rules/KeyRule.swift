/// What holds for the keys that match the same rules: each option with the number of the rule that says it.
package final class KeyRule: Sendable {
    /// An option and where it comes from.
    package struct Setting<Value: Sendable>: Sendable {
        package var value: Value
        /// The place of the rule in the configuration, from 0.
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

        /// Where no rule matches.
        package init() {}
    }

    package let settings: Settings

    // What is asked of each write, taken out of the settings once.
    package let values: ValueRule
    package let access: AccessRule
    let quotas: QuotaRule
    /// Whether no storage keeps the keys.
    let isInMemory: Bool
    /// How safe a change is before its writer goes on, if the writer does not say.
    package let durability: Durability
    /// How long a value stays, in milliseconds; nil for ever.
    let lifetimeMilliseconds: Int64?

    /// - Parameters:
    ///   - settings: The options.
    ///   - quotas: The limits of how much and how often among them.
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
