package import StateEngine

/// Tells people nothing of the rules of a test.
package struct NoTexts: RuleTexts {
    package init() {}

    package func explanation(_ matching: [Int]) -> [RuleOption] { [] }

    package var descriptions: [RuleDescription] { [] }
}

/// Rules that keep the keys of a pattern in memory, and say nothing else.
package func memoryRules(_ pattern: Pattern) -> KeyRules {
    KeyRules([pattern], memoryPatterns: [pattern], usages: [], texts: NoTexts()) { _ in
        var settings = KeyRule.Settings()
        settings.backing = KeyRule.Setting(value: .memory, rule: 0)
        return KeyRule(settings, quotas: [])
    }
}

/// Rules that let storage have the keys of a pattern later, and say nothing else.
package func deferringRules(
    _ pattern: Pattern,
    every interval: Duration,
    backing: KeyBacking = .sqlite
) -> KeyRules {
    KeyRules(
        [pattern],
        memoryPatterns: [],
        deferredPatterns: [pattern],
        usages: [],
        texts: NoTexts()
    ) { _ in
        var settings = KeyRule.Settings()
        settings.durability = KeyRule.Setting(value: .interval, rule: 0)
        settings.commitInterval = KeyRule.Setting(value: interval, rule: 0)
        settings.backing = KeyRule.Setting(value: backing, rule: 0)
        return KeyRule(settings, quotas: [])
    }
}
