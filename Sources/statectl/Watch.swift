import Glibc
import StateClient
import StateEngine

extension Statectl {
    /// `watch PATTERN…`: a line, or a run of the command, for each change.
    static func watch(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        var watcher = try Watcher(invocation)
        try watcher.run(&output)
    }
}

/// A watch and what is done with its changes.
private struct Watcher {
    private let client: Client
    private let command: ChildCommand?
    private let isJSON: Bool
    private let withPrevious: Bool
    private let deadline: Deadline?
    /// How many changes are still to come; nil for no end.
    private var missing: Int64?

    init(_ invocation: Invocation) throws(Failure) {
        isJSON = invocation.has("--json")
        withPrevious = invocation.has("--previous")
        missing = try invocation.number("--count", atLeast: 1)
        deadline = try invocation.duration("--timeout").map { Deadline(after: $0) }
        command = invocation.command.map { ChildCommand(arguments: $0) }
        guard command == nil || !withPrevious || isJSON else {
            throw .usage("--previous with a command needs --json: the command reads the object")
        }
        var patterns: [Pattern] = []
        for text in invocation.operands { patterns.append(try Invocation.pattern(text)) }
        let client = try invocation.connect()
        let snapshot = invocation.has("--snapshot")
        let previous = withPrevious
        _ = try attempt { () throws(StateError) in
            try client.watch(patterns, snapshot: snapshot, previous: previous)
        }
        self.client = client
    }

    mutating func run(_ output: inout Output) throws(Failure) {
        while try nextEvent(&output) {
            if missing == 0 { return }
        }
        // The time is over, or nobody reads any more.
        if missing != nil { throw .negative }
    }

    /// Handles one event; false where none comes any more.
    private mutating func nextEvent(_ output: inout Output) throws(Failure) -> Bool {
        let deadline = deadline
        let event = try attempt { () throws(StateError) in
            try client.nextEvent(until: deadline, orHangupOf: STDOUT_FILENO)
        }
        switch event {
        case nil:
            if !(deadline?.hasPassed ?? false) { throw .brokenPipe }
            return false
        case .commit(_, _, let changes):
            try handle(changes, isState: false, &output)
        case .piece(_, let changes):
            try handle(changes, isState: true, &output)
        case .gap(_, let revision):
            try handleGap(revision, &output)
        case .synced, .progress:
            break
        }
        try output.flush()
        return true
    }

    private mutating func handle(
        _ changes: [Client.Change],
        isState: Bool,
        _ output: inout Output
    ) throws(Failure) {
        for change in changes where missing != 0 {
            missing = missing.map { $0 - 1 }
            guard let command else {
                write(change, &output)
                continue
            }
            let operation = change.value == nil ? "delete" : isState ? "snapshot" : "set"
            command.run(
                key: change.key,
                operation: operation,
                revision: change.revision,
                input: isJSON ? json(change, operation) : change.value ?? []
            )
        }
    }

    /// What was printed before is void: said where the changes are read, and to the person.
    private func handleGap(_ revision: Int64, _ output: inout Output) throws(Failure) {
        Output.report("changes before revision \(revision) were missed; the state follows")
        var object = JSONLine()
        object.add("revision", number: revision)
        object.add("op", text: "gap")
        if let command {
            command.run(
                key: [],
                operation: "gap",
                revision: revision,
                input: isJSON ? object.line : []
            )
        } else if isJSON {
            output.write(object.line)
        } else {
            output.write("\(revision)\tgap\n")
        }
    }

    private func write(_ change: Client.Change, _ output: inout Output) {
        let operation = change.value == nil ? "delete" : "set"
        guard !isJSON else {
            output.write(json(change, operation))
            return
        }
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

    private func json(_ change: Client.Change, _ operation: String) -> [UInt8] {
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
}
