import StateEngine
import StateJSON

/// Checks that concern two options of a configuration together.
extension Configuration {
    static func check(_ table: RuleTable, _ path: JSONPath) throws(OptionFault) {
        // Compares only rules that can conflict: for 5,000 rules, comparing all pairs took 5 s.
        var alike: [[UInt8]: [Rule]] = [:]
        var inFiles: [Rule] = []
        for rule in table.rules {
            let place = path.element(rule.index)
            for other in alike[rule.keys.literal, default: []] { try checkTie(rule, other, place) }
            alike[rule.keys.literal, default: []].append(rule)
            if case .file = rule.backing {
                for other in inFiles { try checkDirectories(rule, other, place) }
                inFiles.append(rule)
            }
            try checkDefault(rule, table, place)
        }
    }

    private static func checkTie(
        _ rule: Rule,
        _ other: Rule,
        _ path: JSONPath
    ) throws(OptionFault) {
        guard rule.ties(with: other),
            let name = rule.optionNames.first(where: other.optionNames.contains)
        else { return }
        let shown = rule.keys.bytes.withUnsafeBytes { StateError.quoted($0) }
        throw OptionFault(
            path.member(name),
            "rules[\(other.index)] sets this option too, and neither rule is more specific for \(shown); "
                + "remove one"
        )
    }

    private static func checkDirectories(
        _ rule: Rule,
        _ other: Rule,
        _ path: JSONPath
    ) throws(OptionFault) {
        guard case .file(let directory, _) = rule.backing,
            case .file(let second, _) = other.backing
        else { return }
        let (mine, theirs) = (parts(directory), parts(second))
        guard mine.starts(with: theirs) || theirs.starts(with: mine) else { return }
        throw OptionFault(
            path.member("directory"),
            "\(directory) overlaps \(second) of rules[\(other.index)]; each rule needs its own "
                + "directory"
        )
    }

    private static func parts(_ directory: String) -> [Substring] {
        directory.split(separator: "/").filter { $0 != "." }
    }

    /// A default must be a valid value of its key.
    private static func checkDefault(
        _ rule: Rule,
        _ table: RuleTable,
        _ path: JSONPath
    ) throws(OptionFault) {
        guard let standard = rule.standard else { return }
        let holding = rule.keys.literal.withUnsafeBytes { table.byKey.rule(for: $0) }
        guard let holding else { return }
        if standard.count > holding.values.byteCount {
            let rule = (holding.settings.limits[.valueBytes]?.rule).map {
                "rules[\($0)].limits.valueBytes"
            }
            throw OptionFault(
                path.member("default"),
                "it has \(standard.count) bytes; \(rule ?? "a value with a schema") allows at most "
                    + "\(holding.values.byteCount)"
            )
        }
        guard let schema = holding.settings.schema else { return }
        let issues = standard.withUnsafeBytes {
            schema.value.issues(of: $0, depthLimit: holding.values.depth)
        }
        guard let issue = issues.first else { return }
        throw OptionFault(
            path.member("default"),
            "rules[\(schema.rule)].schema refuses it: \(issue)"
        )
    }
}

extension Rule {
    /// The names of its options, as written, in the order of the manual; without `directory` and
    /// `shared`, which are parts of `backing`.
    var optionNames: [String] { writtenNames.filter { !Rule.partsOfBacking.contains($0) } }
}
