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
        /// The indices of the matching patterns.
        let matching: [Int]
        let rule: KeyRule?
        /// The nodes for one more matching rule; few, and mostly one.
        var next: [(rule: Int, node: Int)] = []
    }

    /// Overlapping globs can make very many sets; above this number, all are made again.
    package static let nodeLimit = 65_536

    private struct Patterns {
        /// In the order of the configuration.
        let all: [Pattern]
        /// The index of the rule of each pattern.
        let owners: [Int]
        let index: PatternIndex
    }

    private let patterns: Patterns
    private let makeRule: @Sendable (_ matching: [Int]) -> KeyRule
    /// The node for each pattern that matches alone; 0 before it is made.
    @exclusivity(unchecked) private var firstNodes: [Int]
    @exclusivity(unchecked) private var nodes = [Node(matching: [], rule: nil)]

    /// What the access options amount to; set by the creator of the rules.
    package var access = RuledAccess()
    /// The options of the rule whose keys are `/`, and of it alone; nil if there is none.
    package let ruleOfAll: KeyRule?
    /// The patterns of the rules that keep their keys in memory.
    package let memoryPatterns: [Pattern]
    /// What the rules keep of the history, of each that says so.
    let retentions: [KeyRetention]
    /// The patterns of the rules that let storage have their keys later.
    package let deferredPatterns: [Pattern]
    /// The lifetimes that some rule names; set by the creator of the rules.
    package var lifetimes: Set<Lifetime> = []
    /// What readers get for keys that nobody has set; set by the creator of the rules.
    package var standards = StandardValues()
    /// The patterns of the rules that have changes logged; set by the creator of the rules.
    package var audits: [AuditedPattern] = []
    /// The patterns of the rules that limit watches, in the order of their literal parts; set by the
    /// creator of the rules.
    package var watchLimits: [Pattern] = []
    /// The usage of each rule's keys; empty if no rule limits it.
    let usages: [KeyUsage]
    let texts: any RuleTexts

    /// - Parameters:
    ///   - patterns: The patterns of the rules, in the order of the configuration.
    ///   - owners: The index of the rule of each pattern; nil if each rule has one.
    ///   - memoryPatterns: The patterns of the rules that keep their keys in memory.
    ///   - retentions: What the rules keep of the history, of each that says so.
    ///   - deferredPatterns: The patterns of the rules that let storage have their keys later.
    ///   - usages: The usage of each rule's keys; empty if no rule limits it.
    ///   - texts: The texts that describe the rules to people.
    ///   - makeRule: Makes the options for matching patterns with these indices; called under the
    ///     keyspace's lock.
    package init(
        _ patterns: [Pattern],
        owners: [Int]? = nil,
        memoryPatterns: [Pattern],
        retentions: [KeyRetention] = [],
        deferredPatterns: [Pattern] = [],
        usages: [KeyUsage],
        texts: any RuleTexts,
        makeRule: @escaping @Sendable (_ matching: [Int]) -> KeyRule
    ) {
        self.patterns = Patterns(
            all: patterns,
            owners: owners ?? Array(patterns.indices),
            index: PatternIndex(patterns)
        )
        self.memoryPatterns = memoryPatterns
        self.retentions = retentions
        self.deferredPatterns = deferredPatterns
        self.usages = usages
        self.texts = texts
        self.makeRule = makeRule
        firstNodes = Array(repeating: 0, count: patterns.count)
        let all = patterns.indices.filter { patterns[$0] == .everything }
        ruleOfAll = all.isEmpty ? nil : makeRule(all)
    }

    /// A copy of the rules for another thread.
    package init(copying rules: KeyRules) {
        patterns = rules.patterns
        firstNodes = Array(repeating: 0, count: patterns.all.count)
        makeRule = rules.makeRule
        (access, ruleOfAll, usages) = (rules.access, rules.ruleOfAll, rules.usages)
        (memoryPatterns, deferredPatterns) = (rules.memoryPatterns, rules.deferredPatterns)
        (lifetimes, retentions) = (rules.lifetimes, rules.retentions)
        (standards, audits) = (rules.standards, rules.audits)
        watchLimits = rules.watchLimits
        texts = rules.texts
    }

    var isEmpty: Bool { patterns.all.isEmpty && standards.isEmpty }

    package var limitsAccess: Bool { !access.text.isEmpty }

    /// Whether some rule makes `subject` an administrator.
    package func namesAdministrator(_ subject: Subject) -> Bool {
        access.administrators.contains { $0.means(subject, owner: subject.uid) }
    }

    /// Whether no rule can prevent `subject` from reading a key.
    func showsEverything(to subject: Subject) -> Bool {
        access.readers.allSatisfy { $0.contains { $0.means(subject, owner: nil) } }
    }

    /// The options for a key; nil if no rule matches.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, plus the rules whose literal it begins with.
    package func rule(for key: Bytes) -> KeyRule? { nodes[node(of: key)].rule }

    /// The patterns of the rule with an index.
    func patterns(of rule: Int) -> [Pattern] {
        zip(patterns.owners, patterns.all).compactMap { $0 == rule ? $1 : nil }
    }

    /// The number of known sets of rules that match together, including the empty one.
    package var nodeCount: Int { nodes.count }
    /// The indices of the patterns that match a key.
    package func matching(_ key: Bytes) -> [Int] { nodes[node(of: key)].matching }

    @inline(__always)
    private func node(of key: Bytes) -> Int {
        if nodes.count > KeyRules.nodeLimit { forgetNodes() }
        var node = 0
        patterns.index.forEachMatch(key) { rule in
            let first = node == 0 ? firstNodes[rule] : 0
            node = first > 0 ? first : self.node(behind: node, rule)
        }
        return node
    }

    @inline(never)
    private func forgetNodes() {
        nodes = [Node(matching: [], rule: nil)]
        firstNodes = Array(repeating: 0, count: patterns.all.count)
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

/// Finds the patterns that match a key, by one walk over the key; the patterns never change.
///
/// It is like ``LiteralTable``, but manages its memory by hand: each write under rules uses it, and
/// the arrays of a mutable table were retained and released nine times per write, an eighth of the
/// loop's time.
///
/// Everything is written in `init` and freed in `deinit`: the proof of `@unchecked Sendable`.
final class PatternIndex: @unchecked Sendable {
    /// The patterns with one literal.
    private struct Slot {
        var hash = 0
        /// The start of its literal, in the bytes of all literals.
        var start = 0
        var byteCount = 0
        /// The index of its first match, among all matches.
        var firstMatch = 0
        /// 0 if the slot is free.
        var matchCount = 0
    }

    private struct Match {
        var pattern: Int
        var kind: Pattern.Kind
    }

    private let patterns: [Pattern]
    private let literals: UnsafeMutableBufferPointer<UInt8>
    private let matches: UnsafeMutableBufferPointer<Match>
    /// The count is a power of two; at most half of the slots are taken.
    private let slots: UnsafeMutableBufferPointer<Slot>
    /// A bit for each eighth of a slot, by further bits of the hash.
    private let filter: UnsafeMutableBufferPointer<UInt64>
    /// Whether there is a literal of each length.
    private let lengths: UnsafeMutableBufferPointer<Bool>

    init(_ patterns: [Pattern]) {
        self.patterns = patterns
        var groups: [[UInt8]: [Int]] = [:]
        for (index, pattern) in patterns.enumerated() {
            groups[pattern.literal, default: []].append(index)
        }
        var slotCount = 2
        while slotCount < groups.count * 2 { slotCount *= 2 }
        slots = .allocate(capacity: slotCount)
        slots.initialize(repeating: Slot())
        filter = .allocate(capacity: max(1, slotCount * 8 / 64))
        filter.initialize(repeating: 0)
        literals = .allocate(capacity: groups.keys.reduce(0) { $0 + $1.count })
        matches = .allocate(capacity: patterns.count)
        lengths = .allocate(capacity: (groups.keys.map(\.count).max() ?? -1) + 1)
        lengths.initialize(repeating: false)
        var (byteCount, matchCount) = (0, 0)
        for (literal, members) in groups {
            var slot = Slot(hash: LiteralHash(of: literal).value, start: byteCount)
            slot.byteCount = literal.count
            slot.firstMatch = matchCount
            slot.matchCount = members.count
            for byte in literal {
                literals.initializeElement(at: byteCount, to: byte)
                byteCount += 1
            }
            for member in members {
                let match = Match(pattern: member, kind: patterns[member].kind)
                matches.initializeElement(at: matchCount, to: match)
                matchCount += 1
            }
            lengths[literal.count] = true
            var place = slot.hash & (slotCount - 1)
            while slots[place].matchCount > 0 { place = (place + 1) & (slotCount - 1) }
            slots[place] = slot
            let bit = filterBit(slot.hash)
            filter[bit >> 6] |= 1 << UInt64(bit & 63)
        }
    }

    deinit {
        literals.deallocate()
        matches.deallocate()
        slots.deallocate()
        filter.deallocate()
        lengths.deallocate()
    }

    /// Calls `body` with the index of each pattern that matches `key`, the shortest literal first;
    /// always in the same order.
    ///
    /// - Complexity: O(*n*) in the bytes of the key, plus the globs whose literal it begins with.
    @inline(__always)
    func forEachMatch(_ key: Bytes, _ body: (Int) -> Void) {
        var hash = LiteralHash()
        for length in 0..<min(key.count + 1, lengths.count) {
            if length > 0 { hash.take(key[length - 1]) }
            guard lengths[length], isLikely(hash.value),
                let slot = slot(hash.value, key, length)
            else { continue }
            for place in slot.firstMatch..<slot.firstMatch + slot.matchCount {
                let match = matches[place]
                switch match.kind {
                case .prefix: body(match.pattern)
                case .key: if length == key.count { body(match.pattern) }
                case .glob: if patterns[match.pattern].matches(key) { body(match.pattern) }
                }
            }
        }
    }

    @inline(__always)
    private func filterBit(_ hash: Int) -> Int { hash & (filter.count * 64 - 1) }

    /// Returns false if no literal has this hash.
    @inline(__always)
    private func isLikely(_ hash: Int) -> Bool {
        let bit = filterBit(hash)
        return filter[bit >> 6] >> UInt64(bit & 63) & 1 == 1
    }

    /// The slot of the patterns whose literal is the first `length` bytes of `key`.
    private func slot(_ hash: Int, _ key: Bytes, _ length: Int) -> Slot? {
        var place = hash & (slots.count - 1)
        while slots[place].matchCount > 0 {
            let slot = slots[place]
            if slot.hash == hash, slot.byteCount == length {
                let literal = Bytes(
                    rebasing: UnsafeRawBufferPointer(literals)[slot.start..<slot.start + length]
                )
                if key.hasPrefix(literal) { return slot }
            }
            place = (place + 1) & (slots.count - 1)
        }
        return nil
    }
}
