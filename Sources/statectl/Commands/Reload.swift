import StateClient
import StateModel

extension Statectl {
    /// `reload`: has the daemon read its configuration again.
    static func reload(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let done = try attempt { () throws(StateError) in try client.reload() }
        guard !invocation.has("--json") else {
            var object = JSONLine()
            object.add("revision", number: done.revision)
            object.add("changed", json: json(done.changed))
            object.add("restart", json: json(done.needsRestart))
            output.write(object.line)
            return
        }
        for change in done.changed {
            write(change, &output)
            output.write("\n")
        }
        for change in done.needsRestart {
            write(change, &output)
            output.write(" (needs a restart)\n")
        }
        if done.changed.isEmpty { output.write("nothing has changed\n") }
        output.write("in force from revision \(done.revision) on\n")
    }

    private static func write(_ change: Client.OptionChange, _ output: inout Output) {
        if change.rule > 0 {
            output.write("rule \(change.rule) (")
            output.writeEscaped(change.keys)
            output.write(") ")
        }
        output.write("\(change.option): ")
        output.writeEscaped(Array((change.old ?? "none").utf8))
        output.write(" → ")
        output.writeEscaped(Array((change.new ?? "none").utf8))
    }

    private static func json(_ changes: [Client.OptionChange]) -> [UInt8] {
        let objects = changes.map { change in
            var object = JSONLine()
            if change.rule > 0 {
                object.add("rule", number: change.rule)
                object.add("keys", bytes: change.keys)
            }
            object.add("option", text: change.option)
            object.add("old", textOrNull: change.old)
            object.add("new", textOrNull: change.new)
            return object.object
        }
        return [UInt8(ascii: "[")] + objects.joined(separator: [UInt8(ascii: ",")])
            + [UInt8(ascii: "]")]
    }
}

extension JSONLine {
    fileprivate mutating func add(_ name: String, textOrNull text: String?) {
        if let text { add(name, text: text) } else { add(nullNamed: name) }
    }
}
