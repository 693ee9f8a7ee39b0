import StateClient
import StateModel

extension Statectl {
    /// `reload`: makes the daemon reload its configuration.
    static func reload(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let client = try invocation.connect()
        let done = try attempt(try client.reload())
        guard !invocation.isJSON else {
            return output.write(json: [
                "revision": .number(done.revision), "changed": json(done.changed),
                "restart": json(done.needsRestart),
            ])
        }
        for change in done.changed { write(change, "", &output) }
        for change in done.needsRestart { write(change, " (needs a restart)", &output) }
        if done.changed.isEmpty { output.write("nothing has changed\n") }
        output.write("in force from revision \(done.revision) on\n")
    }

    private static func write(
        _ change: Client.OptionChange,
        _ note: String,
        _ output: inout Output
    ) {
        if change.rule > 0 {
            output.write("rule \(change.rule) (")
            output.writeEscaped(change.keys)
            output.write(") ")
        }
        output.write("\(change.option): ")
        output.writeEscaped("\(change.old ?? "none") → \(change.new ?? "none")".bytes)
        output.write("\(note)\n")
    }

    private static func json(_ changes: [Client.OptionChange]) -> JSONLine.Field {
        let objects = changes.map { change -> [UInt8] in
            let object: JSONLine = [
                "rule": change.rule > 0 ? .number(change.rule) : nil,
                "keys": change.rule > 0 ? .bytes(change.keys) : nil,
                "option": .text(change.option), "old": .text(change.old), "new": .text(change.new),
            ]
            return object.object
        }
        return .json("[".bytes + objects.joined(separator: ",".bytes) + "]".bytes)
    }
}
