/// Where the configuration puts the keys of a pattern, as far as files are concerned.
package struct FileRule: Hashable, Sendable {
    /// The keys; a glob never lives in files.
    package var keys: Pattern
    /// The directory of their files; nil if they live elsewhere, even if a wider rule names a
    /// directory.
    package var directory: String?
    /// Whether others than root and this process's user may write to the directory.
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

    /// The index of the most specific rule; nil if no rule matches.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, plus the rules whose literal it begins with.
    func rule(of key: Bytes) -> Int? {
        var best: Int?
        index.forEachMatch(key) { rule in
            if best.map({ rules[rule].isMoreSpecific(than: rules[$0]) }) ?? true { best = rule }
        }
        return best
    }
}
