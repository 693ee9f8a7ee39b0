/// What a configuration says of keys, found by key.
///
/// What holds for the keys that match the same rules is made once, when the first of them is asked for: each set of rules that match
/// together is a node, reached over the rules in the order in which the walk over a key finds them. That is changed under the lock of
/// the keyspace that asks, or by who made this and has not given it away: the proof of `@unchecked Sendable`.
///
/// It is a class of this module, and no protocol, for a write asks it: generic code of another module took 0.4 µs for each.
@usableFromInline
package final class KeyRules: @unchecked Sendable {
    private struct Node {
        /// The rules that match, by their places.
        let matching: [Int]
        let rule: KeyRule?
        /// The node where one more matches; few, and mostly one.
        var next: [(rule: Int, node: Int)] = []
    }

    /// Globs that overlap make as many sets as keys can be told apart by them: beyond so many nodes all are made anew.
    package static let nodeLimit = 65_536

    private let patterns: [Pattern]
    private let index: PatternIndex
    private let makeRule: @Sendable (_ matching: [Int]) -> KeyRule
    /// The node where a rule alone matches; 0 before it is made.
    @exclusivity(unchecked) private var firstNodes: [Int]
    @exclusivity(unchecked) private var nodes = [Node(matching: [], rule: nil)]

    /// What the rules say of access, the same for the same: whoever remembers it sees that it has changed.
    package let accessText: String
    /// Whom some rule makes an administrator.
    private let administrators: [Principal]
    /// Whom each rule lets read that says it.
    private let readers: [[Principal]]
    /// What the rule whose keys are `/` says, and it alone; nil where there is none.
    package let ruleOfAll: KeyRule?
    /// The patterns of the rules that keep their keys in memory.
    package let memoryPatterns: [Pattern]
    /// What the keys of each rule take; empty where no rule limits that.
    let usages: [KeyUsage]
    private let texts: any RuleTexts

    /// - Parameters:
    ///   - patterns: Those of the rules, in the order of the configuration.
    ///   - accessText: What the rules say of access, the same for the same; empty where they say nothing.
    ///   - administrators: Whom some rule makes an administrator.
    ///   - readers: Whom each rule lets read that says it.
    ///   - memoryPatterns: The patterns of the rules that keep their keys in memory.
    ///   - usages: What the keys of each rule take; empty where no rule limits that.
    ///   - texts: What people are told of them.
    ///   - makeRule: What holds where the rules at these places match, called under the keyspace's lock.
    package init(
        _ patterns: [Pattern],
        accessText: String = "",
        administrators: [Principal] = [],
        readers: [[Principal]] = [],
        memoryPatterns: [Pattern],
        usages: [KeyUsage],
        texts: any RuleTexts,
        makeRule: @escaping @Sendable (_ matching: [Int]) -> KeyRule
    ) {
        self.patterns = patterns
        self.accessText = accessText
        self.administrators = administrators
        self.readers = readers
        self.memoryPatterns = memoryPatterns
        self.usages = usages
        self.texts = texts
        self.makeRule = makeRule
        index = PatternIndex(patterns)
        firstNodes = Array(repeating: 0, count: patterns.count)
        let all = patterns.indices.filter { patterns[$0] == .everything }
        ruleOfAll = all.isEmpty ? nil : makeRule(all)
    }

    /// The same rules for another thread.
    package init(copying rules: KeyRules) {
        patterns = rules.patterns
        index = rules.index
        firstNodes = Array(repeating: 0, count: patterns.count)
        makeRule = rules.makeRule
        accessText = rules.accessText
        administrators = rules.administrators
        readers = rules.readers
        ruleOfAll = rules.ruleOfAll
        memoryPatterns = rules.memoryPatterns
        usages = rules.usages
        texts = rules.texts
    }

    /// Whether there are none.
    var isEmpty: Bool { patterns.isEmpty }

    /// Whether some rule says who may do what.
    package var limitsAccess: Bool { !accessText.isEmpty }

    /// Whether some rule makes `subject` an administrator.
    package func namesAdministrator(_ subject: Subject) -> Bool {
        administrators.contains { $0.means(subject, owner: subject.uid) }
    }

    /// Whether no rule can keep `subject` from reading a key.
    func showsEverything(to subject: Subject) -> Bool {
        readers.allSatisfy { $0.contains { $0.means(subject, owner: nil) } }
    }

    /// What holds for a key; nil where no rule matches.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, but for the rules that begin as it does.
    package func rule(for key: Bytes) -> KeyRule? { nodes[node(of: key)].rule }

    /// The options that rules say of a key, for people.
    package func explanation(of key: Bytes) -> [RuleOption] {
        texts.explanation(nodes[node(of: key)].matching)
    }

    /// All rules as they stand, for people.
    package var descriptions: [RuleDescription] { texts.descriptions }

    /// How many sets of rules are known that match together, and none.
    package var nodeCount: Int { nodes.count }

    @inline(__always)
    private func node(of key: Bytes) -> Int {
        if nodes.count > KeyRules.nodeLimit { forgetNodes() }
        var node = 0
        index.forEachMatch(key) { rule in
            let first = node == 0 ? firstNodes[rule] : 0
            node = first > 0 ? first : self.node(behind: node, rule)
        }
        return node
    }

    @inline(never)
    private func forgetNodes() {
        nodes = [Node(matching: [], rule: nil)]
        firstNodes = Array(repeating: 0, count: patterns.count)
    }

    private func node(behind node: Int, _ rule: Int) -> Int {
        for next in nodes[node].next where next.rule == rule { return next.node }
        let matching = nodes[node].matching + [rule]
        let made = nodes.count
        nodes[node].next.append((rule, made))
        nodes.append(Node(matching: matching, rule: makeRule(matching)))
        if node == 0 { firstNodes[rule] = made }
        return made
    }
}

/// What people are told of rules.
package protocol RuleTexts: Sendable {
    /// The options that the rules at these places say of a key that they match, each from the rule that counts, in the order of their
    /// documentation.
    func explanation(_ matching: [Int]) -> [RuleOption]

    /// All rules as they stand.
    var descriptions: [RuleDescription] { get }
}

/// An option and the rule that says it, for people.
package struct RuleOption: Hashable, Sendable {
    /// As it is written: `limits.valueBytes`.
    package var name: String
    /// JSON, as it is written.
    package var value: String
    /// From 1, as messages count; 0 where no rule says it.
    package var rule: Int
    /// The pattern of the rule; empty where there is none.
    package var keys: [UInt8]

    package init(name: String, value: String, rule: Int, keys: [UInt8]) {
        (self.name, self.value, self.rule, self.keys) = (name, value, rule, keys)
    }
}

/// A rule as it is written, for people.
package struct RuleDescription: Sendable {
    /// From 1, as messages count.
    package var number: Int
    /// Its pattern.
    package var keys: [UInt8]
    /// Its options and their values as JSON.
    package var options: [(name: String, value: String)]

    package init(number: Int, keys: [UInt8], options: [(name: String, value: String)]) {
        (self.number, self.keys, self.options) = (number, keys, options)
    }
}

/// What a value may be, as a rule says it.
package protocol ValueSchema: Sendable {
    /// What is wrong with a value.
    ///
    /// - Parameters:
    ///   - value: The bytes.
    ///   - depthLimit: As deep may arrays and objects be nested.
    /// - Returns: An issue each, in the order in which they stand in the value; nothing where it may be.
    func issues(of value: Bytes, depthLimit: Int) -> [ValidationIssue]

    /// The one type that a value has to be of, in the words of JSON Schema; nil where there are several.
    var typeName: String? { get }

    /// Whole numbers that may all be, written in digits alone; nil where it is not known of any range.
    var plainIntegers: ClosedRange<Int64>? { get }
}

/// Where the values of a rule live.
package enum KeyBacking: Hashable, Sendable {
    case sqlite
    case memory
    /// One file each, below a directory; `isShared` where others may write to it.
    case file(directory: String, isShared: Bool)

    /// The options of a rule that take effect at the next start.
    package static let options: Set<String> = ["backing", "directory", "shared"]

    /// The word for it in a configuration.
    package var name: String {
        switch self {
        case .sqlite: "sqlite"
        case .memory: "memory"
        case .file: "file"
        }
    }
}

/// What of a rule's keys is limited.
package enum KeyLimit: String, CaseIterable, Sendable {
    /// The largest value, in bytes.
    case valueBytes
    /// As deep may arrays and objects be nested in a value under a schema.
    case depth
    /// Keys, all those of the rule together.
    case keys
    /// Bytes of keys and values, all those of the rule together.
    case bytes
    /// Writes in a second, of one uid.
    case writesPerSecond
    /// Watches of one uid.
    case watches
    /// Connections of one uid.
    case connections
}
