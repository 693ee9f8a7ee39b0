package import StateEngine

/// The rules of a configuration, found by key.
///
/// Each option comes from the most specific rule that names it: one for the key over one for a prefix over one for a glob, then the one
/// whose literal part is longer.
package struct RuleTable: Sendable {
    /// As they stand in the configuration.
    package let rules: [Rule]
    private let byLiteral: LiteralTable<Int>

    /// Takes the rules of a configuration.
    package init(_ rules: [Rule]) {
        self.rules = rules
        var table = LiteralTable<Int>()
        for (index, rule) in rules.enumerated() { table.insert(index, under: rule.keys.literal) }
        byLiteral = table
    }

    /// The rules whose pattern matches `key`, the most specific first.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, but for the rules that begin as it does.
    package func matching(_ key: Bytes) -> [Int] {
        var found: [Int] = []
        byLiteral.forEach(atStartOf: key) { index in
            if rules[index].keys.matches(key) { found.append(index) }
        }
        if found.count > 1 { found.sort { rules[$0].isMoreSpecific(than: rules[$1]) } }
        return found
    }
}

extension Rule {
    /// Whether its options come before those of `other`.
    package func isMoreSpecific(than other: Rule) -> Bool {
        let (mine, theirs) = (keys.kind.rank, other.keys.kind.rank)
        return mine != theirs ? mine > theirs : keys.literal.count > other.keys.literal.count
    }

    /// Whether neither is more specific, and a key can match both.
    package func ties(with other: Rule) -> Bool {
        guard keys.kind == other.keys.kind, keys.literal.count == other.keys.literal.count else {
            return false
        }
        return keys.kind == .glob ? keys.literal == other.keys.literal : keys == other.keys
    }
}

extension Pattern.Kind {
    /// Higher is more specific.
    fileprivate var rank: Int {
        switch self {
        case .key: 2
        case .prefix: 1
        case .glob: 0
        }
    }
}
