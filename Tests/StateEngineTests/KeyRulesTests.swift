import StateEngine
import StateTestSupport
import Testing

/// Which rules hold for a key.
struct KeyRulesTests {
    /// Rules of which each says that its keys are read-only; of those that match, the last does.
    private func rules(_ patterns: [Pattern]) -> KeyRules {
        KeyRules(patterns, memoryPatterns: [], usages: [], texts: NoTexts()) { matching in
            var settings = KeyRule.Settings()
            let sum = matching.reduce(0) { $0 + 1 << $1 }
            settings.isReadOnly = KeyRule.Setting(value: true, rule: RulePlace(index: sum))
            return KeyRule(settings, quotas: [])
        }
    }

    @Test
    func `keys that tell globs apart in every way find the rules that match, in bounded room`()
        throws
    {
        let letters = Array("abcdefghijklmnopq")
        let rules = rules(try letters.map { try Pattern("*\($0)*") })
        for round in 0..<2 {
            for subset in 0..<1 << letters.count {
                let text = String(
                    letters.indices.filter { subset >> $0 & 1 == 1 }.map { letters[$0] }
                )
                let found = Array(("0" + text).utf8).withUnsafeBytes { rules.rule(for: $0) }
                guard (found?.settings.isReadOnly?.rule.index ?? 0) == subset else {
                    Issue.record(
                        "round \(round): '\(text)' finds \(found?.settings.isReadOnly?.rule.index ?? 0)"
                    )
                    return
                }
            }
        }
        #expect(rules.nodeCount <= KeyRules.nodeLimit + letters.count + 1)
    }
}
