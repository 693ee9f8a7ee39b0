import StateClient

/// What a watch prints for a change.
enum WatchLine {
    /// `revision TAB set|delete TAB key TAB value`, escaped, with the previous value as a fifth
    /// field.
    static func write(_ change: Client.Change, withPrevious: Bool, _ output: inout Output) {
        let operation = change.value == nil ? "delete" : "set"
        let previous = withPrevious ? [change.previous ?? []] : []
        output.writeFields(
            ["\(change.revision)".bytes, operation.bytes, change.key, change.value ?? []] + previous
        )
    }

    /// The change as an object on a line.
    static func json(
        _ change: Client.Change,
        _ operation: String,
        withPrevious: Bool
    ) -> JSONLine {
        [
            "revision": .number(change.revision), "op": .text(operation),
            "key": .bytes(change.key), "value": change.value.map { .value($0) },
            "previous": withPrevious ? change.previous.map { .value($0) } ?? .text(nil) : nil,
        ]
    }

    /// A gap as an object on a line.
    static func json(gapAt revision: Int64) -> JSONLine {
        ["revision": .number(revision), "op": .text("gap")]
    }
}
