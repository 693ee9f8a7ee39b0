import StateWire

/// Who looks at each command before it runs.
struct CommandObservers: OptionSet {
    let rawValue: UInt8
    /// Connections that MONITOR sends every command to.
    static let monitors = CommandObservers(rawValue: 1)
    /// A rule that has reads logged.
    static let audits = CommandObservers(rawValue: 2)
}

extension Dispatcher {
    /// Shows a command to monitors, and logs the reads that a rule wants logged.
    @inline(never)
    func observe(
        _ verb: Verb,
        _ arguments: Arguments,
        _ context: borrowing CommandContext
    ) {
        if registry.observers.contains(.monitors) { monitors.send(verb, arguments, context) }
        if registry.observers.contains(.audits) { gate.logReads(verb, arguments, context) }
    }
}
