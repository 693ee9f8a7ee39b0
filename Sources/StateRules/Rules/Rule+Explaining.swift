import StateEngine
import StateJSON

// The texts about rules.

extension Rule {
    /// Parts of `backing`, which are not options by themselves.
    static let partsOfBacking = [
        "directory", "shared", "mode", "owner", "group", "trim", "stale", "staleAfter",
    ]

    /// The names of its options, as written, in the order of the manual.
    var writtenNames: [String] {
        let options =
            ["backing"] + Rule.partsOfBacking
            + ["durability", "commitEvery", "expire", "lifetime", "history", "schema"]
            + ["default", "readonly", "writeOnce", "audit"]
            + KeyAction.allCases.map(\.rawValue)
        var names = options.filter { source[$0] != nil }
        for limit in KeyLimit.allCases {
            if limits[limit] != nil { names.append("limits.\(limit.rawValue)") }
            if softLimits[limit] != nil { names.append("softLimits.\(limit.rawValue)") }
        }
        return names
    }

    /// Its options with their values as JSON, in that order.
    var writtenOptions: [(name: String, value: String)] {
        writtenNames.map { ($0, written($0)) }
    }

    private func written(_ name: String) -> String {
        let value = name.split(separator: ".").reduce(source) { $0[String($1)] ?? .null }
        // Reading has refused values that JSON cannot express.
        return (try? value.text()).map { String(decoding: $0, as: UTF8.self) } ?? "null"
    }
}

/// The texts of the rules, as in the configuration.
struct WrittenRules: RuleTexts {
    let rules: [Rule]
    let patterns: RulePatterns

    func explanation(_ matching: [Int]) -> [RuleOption] {
        var found: [RuleOption] = []
        for place in patterns.sorted(matching) {
            let rule = rules[patterns.owners[place]]
            let known = Set(found.map(\.name))
            for option in rule.writtenOptions where !known.contains(option.name) {
                // A directory belongs to its backing, which a more specific rule may have set.
                let isPart = Rule.partsOfBacking.contains(option.name)
                if isPart, known.contains("backing") { continue }
                found.append(
                    RuleOption(
                        name: option.name,
                        value: option.value,
                        rule: rule.place,
                        keys: patterns.all[place].bytes
                    )
                )
            }
        }
        return found
    }

    var descriptions: [RuleDescription] {
        rules.flatMap { rule in
            let options = rule.writtenOptions
            return rule.keys.map {
                RuleDescription(place: rule.place, keys: $0.bytes, options: options)
            }
        }
    }
}
