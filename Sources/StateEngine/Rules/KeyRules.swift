/// The configured rules, found by key.
///
/// The options for keys that match the same rules are computed once, for the first of these keys:
/// each set of rules that match together is a node, reached over the rules in the order in which
/// the walk over a key finds them. Nodes are changed under the lock of the keyspace that uses the
/// rules, or by the creator before anybody else has them: the proof of `@unchecked Sendable`.
///
/// It is a class of this module, not a protocol, because each write uses it: generic code of
/// another module took 0.4 µs for each.
@usableFromInline
package final class KeyRules: @unchecked Sendable {
    private struct Node {
        /// The indices of the matching rules.
        let matching: [Int]
        let rule: KeyRule?
        /// The nodes for one more matching rule; few, and mostly one.
        var next: [(rule: Int, node: Int)] = []
    }

    /// Overlapping globs can make very many sets; above this number of nodes, all are discarded and
    /// made again.
    package static let nodeLimit = 65_536

    private let patterns: [Pattern]
    private let index: PatternIndex
    private let makeRule: @Sendable (_ matching: [Int]) -> KeyRule
    /// The node for each rule that matches alone; 0 before it is made.
    @exclusivity(unchecked) private var firstNodes: [Int]
    @exclusivity(unchecked) private var nodes = [Node(matching: [], rule: nil)]

    /// A fingerprint of the access options, equal for equal options: whoever remembers it can
    /// detect a change.
    package let accessText: String
    /// The principals that some rule makes administrators.
    private let administrators: [Principal]
    /// The readers of each rule that names any.
    private let readers: [[Principal]]
    /// The options of the rule whose keys are `/`, and of it alone; nil if there is none.
    package let ruleOfAll: KeyRule?
    /// The patterns of the rules that keep their keys in memory.
    package let memoryPatterns: [Pattern]
    /// The usage of each rule's keys; empty if no rule limits it.
    let usages: [KeyUsage]
    private let texts: any RuleTexts

    /// - Parameters:
    ///   - patterns: The patterns of the rules, in the order of the configuration.
    ///   - accessText: A fingerprint of the access options, equal for equal options; empty if there
    ///     are none.
    ///   - administrators: The principals that some rule makes administrators.
    ///   - readers: The readers of each rule that names any.
    ///   - memoryPatterns: The patterns of the rules that keep their keys in memory.
    ///   - usages: The usage of each rule's keys; empty if no rule limits it.
    ///   - texts: The texts that describe the rules to people.
    ///   - makeRule: Makes the options for matching rules with these indices; called under the
    ///     keyspace's lock.
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

    /// A copy of the rules for another thread.
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

    /// Whether there are no rules.
    var isEmpty: Bool { patterns.isEmpty }

    /// Whether some rule has access options.
    package var limitsAccess: Bool { !accessText.isEmpty }

    /// Whether some rule makes `subject` an administrator.
    package func namesAdministrator(_ subject: Subject) -> Bool {
        administrators.contains { $0.means(subject, owner: subject.uid) }
    }

    /// Whether no rule can prevent `subject` from reading a key.
    func showsEverything(to subject: Subject) -> Bool {
        readers.allSatisfy { $0.contains { $0.means(subject, owner: nil) } }
    }

    /// The options for a key; nil if no rule matches.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, plus the rules whose literal it begins with.
    package func rule(for key: Bytes) -> KeyRule? { nodes[node(of: key)].rule }

    /// The options for a key, for people.
    package func explanation(of key: Bytes) -> [RuleOption] {
        texts.explanation(nodes[node(of: key)].matching)
    }

    /// All rules as they are written, for people.
    package var descriptions: [RuleDescription] { texts.descriptions }

    /// The number of known sets of rules that match together, including the empty one.
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

/// Describes rules to people.
package protocol RuleTexts: Sendable {
    /// The options that the rules with these indices have for a key that matches them, each from
    /// the rule that counts, in the order of their documentation.
    func explanation(_ matching: [Int]) -> [RuleOption]

    /// All rules as they are written.
    var descriptions: [RuleDescription] { get }
}

/// An option and its rule, for people.
package struct RuleOption: Hashable, Sendable {
    /// The name as it is written: `limits.valueBytes`.
    package var name: String
    /// The value as JSON, as it is written.
    package var value: String
    /// The number of the rule, from 1, as in messages; 0 if no rule has the option.
    package var rule: Int
    /// The pattern of the rule; empty if there is none.
    package var keys: [UInt8]

    package init(name: String, value: String, rule: Int, keys: [UInt8]) {
        (self.name, self.value, self.rule, self.keys) = (name, value, rule, keys)
    }
}

/// A rule as it is written, for people.
package struct RuleDescription: Sendable {
    /// From 1, as in messages.
    package var number: Int
    /// Its pattern.
    package var keys: [UInt8]
    /// Its options and their values as JSON.
    package var options: [(name: String, value: String)]

    package init(number: Int, keys: [UInt8], options: [(name: String, value: String)]) {
        (self.number, self.keys, self.options) = (number, keys, options)
    }
}

/// The values that a rule allows.
package protocol ValueSchema: Sendable {
    /// Checks a value.
    ///
    /// - Parameters:
    ///   - value: The bytes.
    ///   - depthLimit: The largest nesting depth of arrays and objects.
    /// - Returns: The issues, in the order of the value; empty if the value is valid.
    func issues(of value: Bytes, depthLimit: Int) -> [ValidationIssue]

    /// The only type that a value may have, as JSON Schema names it; nil if there are several.
    var typeName: String? { get }

    /// A range of whole numbers, written in digits only, that are all valid; nil if none is known.
    var plainIntegers: ClosedRange<Int64>? { get }
}

/// Where the values of a rule live.
package enum KeyBacking: Hashable, Sendable {
    case sqlite
    case memory
    /// One file each, below a directory; `isShared` if others may write to it.
    case file(directory: String, isShared: Bool)

    /// The options of a rule that take effect at the next start.
    package static let options: Set<String> = ["backing", "directory", "shared"]

    /// The name in a configuration.
    package var name: String {
        switch self {
        case .sqlite: "sqlite"
        case .memory: "memory"
        case .file: "file"
        }
    }
}

/// A limit on the keys of a rule.
package enum KeyLimit: String, CaseIterable, Sendable {
    /// The largest value, in bytes.
    case valueBytes
    /// The largest nesting depth of arrays and objects in a value under a schema.
    case depth
    /// The number of all keys of the rule.
    case keys
    /// Bytes of keys and values of all keys of the rule.
    case bytes
    /// Writes per second by one uid.
    case writesPerSecond
    /// Watches of one uid.
    case watches
    /// Connections of one uid.
    case connections
}
