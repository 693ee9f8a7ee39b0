/// Where the configuration says that the keys of a pattern live, as far as files are concerned.
package struct FileRule: Hashable, Sendable {
    /// The keys; a glob never lives in files.
    package var keys: Pattern
    /// The directory of their files; nil if they live elsewhere, though a wider rule may say files.
    package var directory: String?
    /// Whether others than root and this process's user may write the directory.
    package var isShared: Bool

    package init(keys: Pattern, directory: String?, isShared: Bool = false) {
        self.keys = keys
        self.directory = directory
        self.isShared = isShared
    }
}

/// Finds the most specific rule of a key.
struct FileRuleTable: Sendable {
    private let rules: [Pattern]
    private let index: PatternIndex

    init(_ rules: [FileRule]) {
        self.rules = rules.map(\.keys)
        index = PatternIndex(self.rules)
    }

    /// The place of the rule in the list; nil if no rule matches.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, but for the rules that it begins as.
    func rule(of key: Bytes) -> Int? {
        var best: Int?
        index.forEachMatch(key) { rule in
            if best.map({ rules[rule].isMoreSpecific(than: rules[$0]) }) ?? true { best = rule }
        }
        return best
    }
}
