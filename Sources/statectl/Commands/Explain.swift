import StateClient
import StateModel

extension Statectl {
    /// `explain KEY`: the options that apply to a key, each with the rule that sets it.
    static func explain(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let key = try invocation.key()
        let client = try invocation.connect()
        let options = try attempt(try client.explain(key))
        guard !invocation.isJSON else {
            for option in options { output.write(json: json(option)) }
            return
        }
        try output.writeTable(
            ["OPTION", "VALUE", "RULE"],
            options.map { option in
                let line = option.source.isEmpty ? "" : ", \(shownLine(option.source))"
                let place = "\(option.rule) (".bytes + option.keys + ")\(line)".bytes
                return [
                    option.name.bytes, option.value.bytes,
                    option.rule > 0 ? place : standardPlace(option).bytes,
                ]
            }
        )
    }

    private static func json(_ option: Client.ExplainedOption) -> JSONLine {
        [
            "option": .text(option.name), "value": .json(option.value.bytes),
            "rule": .number(option.rule), "keys": option.rule > 0 ? .bytes(option.keys) : nil,
            "source": option.rule > 0 || !option.source.isEmpty ? .text(option.source) : nil,
        ]
    }

    /// Where an option is from that no rule sets.
    private static func standardPlace(_ option: Client.ExplainedOption) -> String {
        option.source.isEmpty ? "default" : "default from \(option.source)"
    }

    /// The line of a rule, as in messages.
    private static func shownLine(_ source: String) -> String {
        source.contains(":") ? source : "line \(source)"
    }

    /// `rules`: the rules of the daemon's configuration.
    static func rules(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let rules = try attempt(try client.rules())
        guard !invocation.isJSON else {
            for rule in rules {
                output.write(json: [
                    "rule": .number(rule.number), "keys": .bytes(rule.keys),
                    "options": .json(rule.options.bytes), "source": .text(rule.source),
                ])
            }
            return
        }
        guard !rules.isEmpty else { return }
        try output.writeTable(
            ["RULE", "LINE", "KEYS", "OPTIONS"],
            rules.map { ["\($0.number)".bytes, $0.source.bytes, $0.keys, $0.options.bytes] }
        )
    }
}
