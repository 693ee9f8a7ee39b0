package import StateEngine

/// What holds for a key: each option with the number of the rule that says it.
package struct ResolvedRule: Sendable {
    /// An option and where it comes from.
    package struct Setting<Value: Sendable>: Sendable {
        package let value: Value
        /// The place of the rule in the configuration, from 0.
        package let rule: Int
    }

    package private(set) var backing: Setting<RuleBacking>?
    package private(set) var durability: Setting<Durability>?
    package private(set) var expiry: Setting<Duration>?
    package private(set) var schema: Setting<Schema>?
    package private(set) var standard: Setting<[UInt8]>?
    package private(set) var isReadOnly: Setting<Bool>?
    package private(set) var isWriteOnce: Setting<Bool>?
    package private(set) var access: [RuleAction: Setting<[RulePrincipal]>] = [:]
    package private(set) var limits: [RuleLimit: Setting<Int64>] = [:]
    package private(set) var softLimits: [RuleLimit: Setting<Int64>] = [:]

    /// Where no rule matches.
    package init() {}

    /// - Parameters:
    ///   - rules: All those of the configuration.
    ///   - matching: The places of those that match, the most specific first.
    package init(_ rules: [Rule], matching: [Int]) {
        for index in matching {
            let rule = rules[index]
            func setting<Value: Sendable>(
                _ known: Setting<Value>?,
                _ value: Value?
            ) -> Setting<Value>? { known ?? value.map { Setting(value: $0, rule: index) } }
            backing = setting(backing, rule.backing)
            durability = setting(durability, rule.durability)
            expiry = setting(expiry, rule.expiry)
            schema = setting(schema, rule.schema)
            standard = setting(standard, rule.standard)
            isReadOnly = setting(isReadOnly, rule.isReadOnly)
            isWriteOnce = setting(isWriteOnce, rule.isWriteOnce)
            for (action, principals) in rule.access {
                access[action] = setting(access[action], principals)
            }
            for limit in RuleLimit.allCases {
                limits[limit] = setting(limits[limit], rule.limits[limit])
                softLimits[limit] = setting(softLimits[limit], rule.softLimits[limit])
            }
        }
    }
}
