/// Where the configuration says that the keys of a pattern live, as far as files are concerned.
package struct FileRule: Hashable, Sendable {
    /// The keys; a glob never lives in files.
    package var keys: Pattern
    /// The directory of their files; nil where they live elsewhere, though a wider rule may say files.
    package var directory: String?
    /// Whether others than root and this process's user may write the directory.
    package var isShared: Bool

    package init(keys: Pattern, directory: String?, isShared: Bool = false) {
        self.keys = keys
        self.directory = directory
        self.isShared = isShared
    }
}

/// Which container a key lives in: the one that the most specific rule says.
struct FileRuleTable: Sendable {
    private let rules: [(keys: Pattern, container: Int?)]
    private let index: PatternIndex

    init(_ rules: [(keys: Pattern, container: Int?)]) {
        self.rules = rules
        index = PatternIndex(rules.map(\.keys))
    }

    /// - Complexity: O(*n*) in the bytes of the key, but for the rules that it begins as.
    func container(of key: Bytes) -> Int? {
        var best: Int?
        index.forEachMatch(key) { rule in
            if let known = best, !rules[rule].keys.isMoreSpecific(than: rules[known].keys) {
                return
            }
            best = rule
        }
        return best.flatMap { rules[$0].container }
    }
}
