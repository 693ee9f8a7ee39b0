/// How much of the history of each of its keys a rule keeps.
package struct KeyRetention: Hashable, Sendable {
    /// The most superseded versions of one key; nil if unlimited.
    package var changeCount: Int?
    /// How long a version is kept after another has superseded it; nil if unlimited.
    package var age: Duration?

    package init(changeCount: Int? = nil, age: Duration? = nil) {
        (self.changeCount, self.age) = (changeCount, age)
    }
}

/// The same in the units in which storage counts; `max` if unlimited.
package struct KeptHistory: Hashable, Sendable {
    package let changeCount: Int64
    package let ageMilliseconds: Int64
    /// The index of the rule in the configuration.
    package let rule: Int

    init(_ setting: KeyRule.Setting<KeyRetention>) {
        changeCount = setting.value.changeCount.map { Int64($0) } ?? .max
        ageMilliseconds = setting.value.age.map { Int64($0 / .milliseconds(1)) } ?? .max
        rule = setting.rule.index
    }
}

/// The rules of a keyspace, for the thread that compacts the history.
///
/// Only that thread uses the copy of the rules: the proof of `@unchecked Sendable`.
package final class HistoryRules: @unchecked Sendable {
    private let rules: KeyRules
    /// The shortest age that a rule keeps; nil if no rule has one.
    package let shortestAge: Duration?

    /// - Returns: Nil if no rule has anything to say about the history.
    package init?(_ rules: KeyRules) {
        guard !rules.retentions.isEmpty else { return nil }
        shortestAge = rules.retentions.compactMap(\.age).min()
        self.rules = KeyRules(copying: rules)
    }

    /// What the rules keep of a key; nil if they leave that to the retention of the daemon.
    package func kept(of key: Bytes) -> KeptHistory? { rules.rule(for: key)?.keptHistory }

    /// The patterns of a rule.
    package func patterns(of rule: Int) -> [Pattern] { rules.patterns(of: rule) }
}
