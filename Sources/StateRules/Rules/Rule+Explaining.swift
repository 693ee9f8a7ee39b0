import StateEngine
import StateJSON

// What people are told of rules.

extension Rule {
    /// Its options with their values as JSON, as they are written, in the order of the manual.
    package var writtenOptions: [(name: String, value: String)] {
        var names = optionNames
        // They belong to the backing, and are none by themselves.
        for name in ["shared", "directory"] where source[name] != nil {
            names.insert(name, at: (names.firstIndex(of: "backing") ?? -1) + 1)
        }
        return names.map { ($0, written($0)) }
    }

    private func written(_ name: String) -> String {
        let value = name.split(separator: ".").reduce(source) { $0[String($1)] ?? .null }
        // What a configuration cannot say in JSON is refused where it is read.
        return (try? value.text()).map { String(decoding: $0, as: UTF8.self) } ?? "null"
    }
}

/// The rules as they stand in the configuration, for people.
struct WrittenRules: RuleTexts {
    let rules: [Rule]

    func explanation(_ matching: [Int]) -> [RuleOption] {
        var found: [RuleOption] = []
        for index in RuleTable.sorted(matching, of: rules) {
            let rule = rules[index]
            let known = Set(found.map(\.name))
            for option in rule.writtenOptions where !known.contains(option.name) {
                // A directory goes with its backing, which a more specific rule may have said.
                let isPart = option.name == "directory" || option.name == "shared"
                if isPart, known.contains("backing") { continue }
                found.append(
                    RuleOption(
                        name: option.name,
                        value: option.value,
                        rule: index + 1,
                        keys: rule.keys.bytes
                    )
                )
            }
        }
        return found
    }

    var descriptions: [RuleDescription] {
        rules.map {
            RuleDescription(
                number: $0.index + 1,
                keys: $0.keys.bytes,
                options: $0.writtenOptions
            )
        }
    }
}
