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
