import StateEngine
import StateJSON

/// Checks that concern several rules together.
struct RuleTableChecks {
    private(set) var faults: [OptionFault] = []
    private(set) var warnings: [OptionFault] = []

    private let table: RuleTable
    /// The names of the options of each rule.
    private let optionNames: [[String]]
    /// How much work comparing globs may still be, in pairs of their elements; a file that needs
    /// more is only warned about.
    private var stepsLeft = 200_000_000

    /// What looking at any pair costs.
    private static let leastSteps = 100

    init(_ table: RuleTable) {
        self.table = table
        optionNames = table.rules.map(\.optionNames)
        checkTies()
        checkFiles()
        checkDirectories()
        checkHiddenGlobs()
        for rule in table.rules { checkDefault(rule) }
        checkDefaults()
    }

    private var isFull: Bool { faults.count >= OptionReader.faultLimit }

    private mutating func add(_ rule: Rule, _ option: String, _ message: String) {
        guard !isFull else { return }
        faults.append(
            rule.fault(
                option.split(separator: ".").reduce(rule.path) {
                    $0.member(String($1))
                },
                message
            )
        )
    }

    // MARK: Ties

    /// Refuses two rules that set one option of a key and of which neither is more specific.
    private mutating func checkTies() {
        // Compares only rules that can conflict: for 5,000 rules, comparing all pairs took 5 s.
        var known: [Pattern.Kind: [[UInt8]: [Int]]] = [:]
        var globs: [[UInt8]: [(rule: Int, keys: Pattern)]] = [:]
        for (index, rule) in table.rules.enumerated() {
            for keys in rule.keys {
                guard keys.kind != .glob else {
                    globs[keys.literal, default: []].append((index, keys))
                    continue
                }
                for other in known[keys.kind]?[keys.literal] ?? [] { checkTie(rule, other, keys) }
                known[keys.kind, default: [:]][keys.literal, default: []].append(index)
            }
        }
        for (_, group) in globs.sorted(by: { $0.value[0].rule < $1.value[0].rule })
        where group.count > 1 && !isFull {
            checkTies(of: group)
        }
    }

    /// Compares globs with one literal part.
    ///
    /// Two of them can only match one key if the bytes behind the last metacharacter of one end those
    /// of the other.
    private mutating func checkTies(of group: [(rule: Int, keys: Pattern)]) {
        var known: [[UInt8]: [(rule: Int, keys: Pattern, shape: GlobShape)]] = [:]
        var lengths: Set<Int> = []
        let shaped = group.map { ($0.rule, $0.keys, GlobShape($0.keys)) }
        for (rule, keys, shape) in shaped.sorted(by: { $0.2.tail.count < $1.2.tail.count }) {
            let tail = shape.tail
            for length in lengths where length <= tail.count {
                for other in known[Array(tail.suffix(length))] ?? [] where other.rule != rule {
                    stepsLeft -= max(
                        RuleTableChecks.leastSteps,
                        (shape.elementCount + 1) * (other.shape.elementCount + 1)
                    )
                    guard stepsLeft >= 0 else { return warnOfPairs(rule) }
                    guard !isFull else { return }
                    guard shape.meets(other.shape) else { continue }
                    let (first, last) = (min(rule, other.rule), max(rule, other.rule))
                    checkTie(table.rules[last], first, keys)
                }
            }
            lengths.insert(tail.count)
            known[tail, default: []].append((rule, keys, shape))
        }
    }

    private mutating func warnOfPairs(_ rule: Int) {
        guard !warnings.contains(where: { $0.message == RuleTableChecks.manyGlobs }) else { return }
        let rule = table.rules[rule]
        warnings.append(rule.fault(rule.path.member("keys"), RuleTableChecks.manyGlobs))
    }

    private static let manyGlobs =
        "there are too many globs that begin and end alike to compare all of them; of two that are "
        + "equally specific, the first in the file applies"

    private mutating func checkTie(_ rule: Rule, _ other: Int, _ keys: Pattern) {
        guard !isFull, other != rule.index,
            let name = optionNames[rule.index].first(where: optionNames[other].contains)
        else { return }
        let other = table.rules[other]
        let shown = keys.bytes.withUnsafeBytes { StateError.quoted($0) }
        add(
            rule,
            name,
            "\(other.place) sets this option too, and neither rule is more specific for \(shown); "
                + "remove one"
        )
    }

    // MARK: Rules that never apply

    /// Warns of options of a glob whose keys all belong to a prefix that sets the same options: a
    /// prefix is more specific.
    private mutating func checkHiddenGlobs() {
        var prefixes: [[UInt8]: [Int]] = [:]
        for (index, rule) in table.rules.enumerated() {
            for keys in rule.keys where keys.kind == .prefix {
                prefixes[keys.literal, default: []].append(index)
            }
        }
        guard !prefixes.isEmpty else { return }
        for rule in table.rules where warnings.count < 100 {
            guard !rule.keys.isEmpty, rule.keys.allSatisfy({ $0.kind == .glob }) else { continue }
            let names = rule.optionNames.filter { name in
                rule.keys.allSatisfy { hides(name, $0, prefixes) != nil }
            }
            guard let name = names.first, let keys = rule.keys.first,
                let hiding = hides(name, keys, prefixes)
            else { continue }
            let other = table.rules[hiding]
            let isWhole = names.count == rule.optionNames.count
            warnings.append(
                rule.fault(
                    isWhole ? rule.path : rule.path.member(name),
                    isWhole
                        ? "this rule never applies: \(other.place) sets its options for a prefix of all "
                            + "of its keys, and a prefix is more specific than a glob"
                        : "this option never applies: \(other.place) sets it for a prefix of all keys "
                            + "of this rule, and a prefix is more specific than a glob"
                )
            )
        }
    }

    /// The rule for a prefix of all keys of a glob that sets an option.
    private func hides(_ name: String, _ glob: Pattern, _ prefixes: [[UInt8]: [Int]]) -> Int? {
        for length in (0...glob.literal.count).reversed()
        where length == 0 || glob.literal[length - 1] == UInt8(ascii: "/") {
            let found = prefixes[Array(glob.literal[..<length])]?.first {
                table.rules[$0].optionNames.contains(name)
            }
            if let found { return found }
        }
        return nil
    }

    // MARK: Directories and defaults

    /// Refuses files that users may use although a rule forbids them to use the keys so.
    private mutating func checkFiles() {
        for rule in table.rules {
            guard case .file = rule.backing else { continue }
            var verbs: Set<String> = []
            for exposure in table.exposures(of: rule)
            where verbs.insert(exposure.use.verb).inserted {
                let (who, verb, other) = (
                    exposure.who, exposure.use.verb, exposure.restriction.place
                )
                add(
                    rule,
                    "mode",
                    "\(who) could \(verb) the files, but \(other) restricts who may \(verb) the keys; "
                        + "remove these bits, or name a group that may \(verb) them"
                )
            }
            if let other = table.restrictionInShared(rule) {
                warnings.append(
                    rule.fault(
                        rule.path.member("shared"),
                        "users who may write the directory see the names of its keys and can replace "
                            + "their files, though \(other.place) restricts who may read the keys; use "
                            + "a directory that is not shared"
                    )
                )
            }
            if let other = table.restriction(ofOwnerOf: rule, to: .read) {
                add(
                    rule,
                    "owner",
                    "the owner could read the files, but \(other.place) restricts who may read the "
                        + "keys; name a user there that may read them, or add the owner to 'read'"
                )
            } else if let other = table.restriction(ofOwnerOf: rule, to: .write) {
                warnings.append(
                    rule.fault(
                        rule.path.member("owner"),
                        "the owner can write the files, though \(other.place) restricts who may write "
                            + "the keys"
                    )
                )
            }
        }
    }

    /// Refuses directories that contain each other.
    private mutating func checkDirectories() {
        var inFiles: [(parts: [String], directory: String, rule: Rule)] = []
        for rule in table.rules {
            guard case .file(let directory, _) = rule.backing else { continue }
            let parts = directory.split(separator: "/").filter { $0 != "." }.map { String($0) }
            inFiles.append((parts, directory, rule))
        }
        // Whatever is inside a directory comes directly behind it.
        inFiles.sort { left, right in
            left.parts == right.parts
                ? left.rule.index < right.rule.index
                : left.parts.lexicographicallyPrecedes(right.parts)
        }
        for (outer, inner) in zip(inFiles, inFiles.dropFirst())
        where inner.parts.starts(with: outer.parts) {
            let isLater = inner.rule.index > outer.rule.index
            let (rule, other) = isLater ? (inner, outer) : (outer, inner)
            add(
                rule.rule,
                "directory",
                "\(rule.directory) overlaps \(other.directory) of \(other.rule.place); each rule "
                    + "needs its own directory"
            )
        }
    }

    /// A default must be a valid value of its key.
    private mutating func checkDefault(_ rule: Rule) {
        guard let standard = rule.standard, let keys = rule.keys.first,
            let message = fault(ofDefault: standard, keys.literal)
        else { return }
        add(rule, "default", message)
    }

    private mutating func checkDefaults() {
        let members = table.defaults.members.sorted {
            ($0.value.part, $0.key.bytes.count) < ($1.value.part, $1.key.bytes.count)
        }
        for (key, member) in members where !isFull {
            guard let value = member.value, let message = fault(ofDefault: value, key.bytes) else {
                continue
            }
            let fault = OptionFault(member.path, "the default of '\(key)': \(message)")
            faults.append(fault.located(in: member.part, after: 0))
        }
    }

    /// Why a value cannot be that of a key.
    private func fault(ofDefault standard: [UInt8], _ key: [UInt8]) -> String? {
        guard let holding = key.withUnsafeBytes({ table.byKey.rule(for: $0) }) else { return nil }
        if standard.count > holding.values.byteCount {
            let limit = (holding.settings.limits[.valueBytes]?.rule).map {
                "limits.valueBytes of \($0)"
            }
            return
                "it has \(standard.count) bytes; \(limit ?? "a value with a schema") allows at most "
                + "\(holding.values.byteCount)"
        }
        guard let schema = holding.settings.schema else { return nil }
        let issues = standard.withUnsafeBytes {
            schema.value.issues(of: $0, depthLimit: holding.values.depth)
        }
        return issues.first.map { "the schema of \(schema.rule) refuses it: \($0)" }
    }
}

extension Rule {
    /// The names of its options, as written, in the order of the manual; without `directory` and
    /// `shared`, which are parts of `backing`.
    var optionNames: [String] { writtenNames.filter { !Rule.partsOfBacking.contains($0) } }
}
