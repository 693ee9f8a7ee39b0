import StateClient
import StateModel

extension Statectl {
    /// `reload`: makes the daemon reload its configuration; with `--dry-run`, as `check-config`.
    static func reload(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        if invocation.has("--dry-run") { return try checkConfiguration(invocation, &output) }
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
        if done.changed.isEmpty {
            output.write("nothing \(done.needsRestart.isEmpty ? "" : "else ")has changed\n")
        }
        output.write("in force from revision \(done.revision) on\n")
    }

    /// `check-config`: what a reload would do now.
    static func checkConfiguration(
        _ invocation: Invocation,
        _ output: inout Output
    ) throws(Failure) {
        let client = try invocation.connect()
        let preview = try attempt(try client.previewOfReload())
        if invocation.isJSON {
            output.write(json: [
                "errors": json(preview.errors), "warnings": json(preview.warnings),
                "changed": json(preview.changed), "restart": json(preview.needsRestart),
                "checked": .number(preview.checkedCount),
                "refused": .number(preview.refusedCount),
            ])
        } else {
            for warning in preview.warnings { write("warning: ", warning, &output) }
            for error in preview.errors { write("error: ", error, &output) }
        }
        guard preview.errors.isEmpty else {
            throw .usage("a reload would be refused: \(counted(preview.errors.count, "error"))")
        }
        if invocation.isJSON { return }
        for change in preview.changed { write(change, "", &output) }
        for change in preview.needsRestart { write(change, " (needs a restart)", &output) }
        if preview.changed.isEmpty {
            output.write("nothing \(preview.needsRestart.isEmpty ? "" : "else ")would change\n")
        }
        for value in preview.refused {
            output.writeFields(["\(value.revision)".bytes, value.key], message: value.issue)
        }
        let refused = preview.refusedCount
        let verdict = refused == 0 ? "nothing would be refused" : "\(refused) would be refused"
        output.write("\(preview.checkedCount) stored values checked: \(verdict)\n")
    }

    private static func counted(_ count: Int, _ noun: String) -> String {
        "\(count) \(noun)\(count == 1 ? "" : "s")"
    }

    private static func write(_ kind: String, _ lines: [String], _ output: inout Output) {
        for (index, line) in lines.enumerated() {
            output.write((index == 0 ? kind : "") + StateError.printable(line) + "\n")
        }
    }

    /// The first line of each note.
    private static func json(_ findings: [[String]]) -> JSONLine.Field {
        .texts(findings.map { $0.first ?? "" })
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
