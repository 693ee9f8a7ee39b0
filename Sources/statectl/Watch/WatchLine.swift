import StateClient

/// What a watch prints of a change.
enum WatchLine {
    /// `revision TAB set|delete TAB key TAB value`, escaped, and the value before as a fifth field.
    static func write(_ change: Client.Change, withPrevious: Bool, _ output: inout Output) {
        let operation = change.value == nil ? "delete" : "set"
        output.write("\(change.revision)\t\(operation)\t")
        output.writeEscaped(change.key)
        output.write("\t")
        output.writeEscaped(change.value ?? [])
        if withPrevious {
            output.write("\t")
            output.writeEscaped(change.previous ?? [])
        }
        output.write("\n")
    }

    /// The change as an object on a line.
    static func json(
        _ change: Client.Change,
        _ operation: String,
        withPrevious: Bool
    ) -> [UInt8] {
        var object = JSONLine()
        object.add("revision", number: change.revision)
        object.add("op", text: operation)
        object.add("key", bytes: change.key)
        if let value = change.value {
            object.add(value: value, named: "value", elseBase64: "base64")
        }
        if withPrevious, let previous = change.previous {
            object.add(value: previous, named: "previous", elseBase64: "previousBase64")
        } else if withPrevious {
            object.add(nullNamed: "previous")
        }
        return object.line
    }

    /// A gap as an object on a line.
    static func json(gapAt revision: Int64) -> [UInt8] {
        var object = JSONLine()
        object.add("revision", number: revision)
        object.add("op", text: "gap")
        return object.line
    }
}
