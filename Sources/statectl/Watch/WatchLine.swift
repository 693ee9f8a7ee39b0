import StateClient

/// What a watch prints for a change.
struct WatchLine {
    /// Whether the value that was replaced is a further field.
    let withPrevious: Bool
    /// Whether the time at which the change arrived is a further field.
    let withTime: Bool

    /// `revision TAB set|delete TAB key TAB value`, escaped, with the previous value as a fifth
    /// field, and the time as the last.
    func write(_ change: Client.Change, _ output: inout Output) {
        let operation = change.value == nil ? "delete" : "set"
        var fields = [
            "\(change.revision)".bytes, operation.bytes, change.key, change.value ?? [],
        ]
        if withPrevious { fields.append(change.previous ?? []) }
        if withTime { fields.append(Timestamp.text(Timestamp.now).bytes) }
        output.writeFields(fields)
    }

    /// The change as an object on a line.
    func json(_ change: Client.Change, _ operation: String) -> JSONLine {
        [
            "revision": .number(change.revision), "op": .text(operation),
            "key": .bytes(change.key), "value": change.value.map { .value($0) },
            "previous": withPrevious ? change.previous.map { .value($0) } ?? .text(nil) : nil,
            "time": withTime ? .number(Timestamp.now) : nil,
        ]
    }

    /// A gap as an object on a line.
    static func json(gapAt revision: Int64) -> JSONLine {
        ["revision": .number(revision), "op": .text("gap")]
    }
}
