import StateClient
import StateModel

/// The command of a watch, run for one change at a time, and what happens if it fails.
struct ChangeCommand {
    let child: ChildCommand
    /// Whether a failed command is run again until it succeeds; else the failure is only reported.
    let retries: Bool
    /// Whether it reads the change as a JSON object; else it reads the value.
    let isJSON: Bool
    /// What that object has.
    let line: WatchLine
    let deadline: Deadline?

    /// Runs it for a change.
    ///
    /// - Returns: False if the deadline passed before it succeeded.
    func run(for change: Client.Change, isState: Bool) throws(Failure) -> Bool {
        let operation = change.value == nil ? "delete" : isState ? "snapshot" : "set"
        let input =
            isJSON
            ? line.json(change, operation).line
            : change.value ?? []
        return try run(change.key, operation, change.revision, input)
    }

    /// Runs it for a gap: changes delivered before are void, and the state follows.
    ///
    /// - Returns: False if the deadline passed before it succeeded.
    func run(forGapAt revision: Int64) throws(Failure) -> Bool {
        try run([], "gap", revision, isJSON ? WatchLine.json(gapAt: revision).line : [])
    }

    private func run(
        _ key: [UInt8],
        _ operation: String,
        _ revision: Int64,
        _ input: [UInt8]
    ) throws(Failure) -> Bool {
        var backOff = BackOff(first: .milliseconds(100), last: .seconds(30))
        while true {
            let failure = child.run(
                key: key,
                operation: operation,
                revision: revision,
                input: input
            )
            guard let failure else { return true }
            guard retries else {
                Output.report(failure)
                return true
            }
            let pause = backOff.next()
            Output.report("\(failure); retrying in \(pause.shown)")
            guard try Pause.rest(pause, until: deadline, needsReader: false) else { return false }
        }
    }
}
