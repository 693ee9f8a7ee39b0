package import StateEngine

/// Tells people nothing of the rules of a test.
package struct NoTexts: RuleTexts {
    package init() {}

    package func explanation(_ matching: [Int]) -> [RuleOption] { [] }

    package var descriptions: [RuleDescription] { [] }
}
