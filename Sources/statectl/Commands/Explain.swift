import StateClient
import StateModel

extension Statectl {
    /// `explain KEY`: the options that hold for a key, each with the rule that says it.
    static func explain(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let bytes = invocation.operands[0]
        let key = try attempt { () throws(StateError) in try Key(bytes: bytes) }
        let client = try invocation.connect()
        let options = try attempt { () throws(StateError) in try client.explain(key) }
        guard !invocation.has("--json") else {
            for option in options { output.write(json(option)) }
            return
        }
        var rows = [["OPTION", "VALUE", "RULE"].map { Array($0.utf8) }]
        for option in options {
            let place = Array("\(option.rule) (".utf8) + option.keys + [UInt8(ascii: ")")]
            rows.append([
                Array(option.name.utf8), Array(option.value.utf8),
                option.rule > 0 ? place : Array("default".utf8),
            ])
        }
        output.writeTable(rows)
    }

    private static func json(_ option: Client.ExplainedOption) -> [UInt8] {
        var object = JSONLine()
        object.add("option", text: option.name)
        object.add("value", json: Array(option.value.utf8))
        object.add("rule", number: option.rule)
        if option.rule > 0 { object.add("keys", bytes: option.keys) }
        return object.line
    }

    /// `rules`: the rules of the daemon's configuration.
    static func rules(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let rules = try attempt { () throws(StateError) in try client.rules() }
        guard !invocation.has("--json") else {
            for rule in rules {
                var object = JSONLine()
                object.add("rule", number: rule.number)
                object.add("keys", bytes: rule.keys)
                object.add("options", json: Array(rule.options.utf8))
                output.write(object.line)
            }
            return
        }
        guard !rules.isEmpty else { return }
        var rows = [["RULE", "KEYS", "OPTIONS"].map { Array($0.utf8) }]
        for rule in rules {
            rows.append([Array("\(rule.number)".utf8), rule.keys, Array(rule.options.utf8)])
        }
        output.writeTable(rows)
    }
}
