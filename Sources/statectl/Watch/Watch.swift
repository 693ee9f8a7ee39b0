import StateClient
import StateModel

extension Statectl {
    /// `watch PATTERN…`: a line, or a run of the command, for each change.
    static func watch(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        var watcher = try Watcher(invocation)
        try watcher.run(&output)
    }
}

/// A watch and what is done with its changes.
private struct Watcher {
    private var watch: ResumedWatch
    private let command: ChangeCommand?
    private let isJSON: Bool
    private let withPrevious: Bool
    private let isLatest: Bool
    /// Whether the daemon remembers how far the command has come: only whole commits are handled.
    private let isNamed: Bool
    /// Whether anything came that the daemon is to be told of at the next end of a round, or the state is to come.
    private var isInRound = true
    /// How many changes are still to come; nil for no end.
    private var missing: Int64?

    init(_ invocation: Invocation) throws(Failure) {
        isJSON = invocation.isJSON
        withPrevious = invocation.has("--previous")
        isLatest = invocation.has("--latest")
        guard !isLatest || !withPrevious else {
            throw .usage(
                "--latest and --previous: what the latest value replaced may not have been told"
            )
        }
        missing = try invocation.number("--count", atLeast: 1)
        let deadline = try invocation.duration("--timeout").map { Deadline(after: $0) }
        let handler = try NamedHandler(invocation)
        isNamed = handler != nil
        command = try ChangeCommand(invocation, isNamed: isNamed, until: deadline)
        watch = try ResumedWatch(
            invocation,
            try invocation.operands.map(Invocation.pattern),
            from: try Client.HandlerStart(invocation),
            ResumedWatch.Options(latest: isLatest, previous: withPrevious),
            for: handler,
            until: deadline,
            needsReader: true
        )
    }

    mutating func run(_ output: inout Output) throws(Failure) {
        while let event = try watch.next() {
            guard try handle(event, &output) else { break }
            try output.flush()
            // A commit is whole, and a round: what the daemon was told begins behind it.
            if let missing, missing <= 0, !isNamed || !isInRound { return }
        }
        // The time is over.
        if missing != nil { throw .negative }
    }

    /// Handles one event; false where the time was over before that was done.
    private mutating func handle(
        _ event: Client.Event,
        _ output: inout Output
    ) throws(Failure) -> Bool {
        switch event {
        case .commit(_, let revision, let changes):
            guard try handle(changes, isState: false, &output) else { return false }
            // A round of latest values is whole with its synced.
            isInRound = isLatest
            if !isLatest { try watch.finish(revision) }
        case .piece(_, let changes):
            isInRound = true
            return try handle(changes, isState: true, &output)
        case .gap(_, let revision):
            isInRound = true
            return try handleGap(revision, &output)
        case .synced(_, let revision):
            // An empty round says no more than how far the daemon is.
            if isInRound { try watch.finish(revision) } else { try watch.advance(to: revision) }
            isInRound = false
        case .progress(_, let revision): try watch.advance(to: revision)
        }
        return true
    }

    private mutating func handle(
        _ changes: [Client.Change],
        isState: Bool,
        _ output: inout Output
    ) throws(Failure) -> Bool {
        for change in changes where isNamed || missing != 0 {
            if let command {
                guard try command.run(for: change, isState: isState) else { return false }
            } else if isJSON {
                let operation = change.value == nil ? "delete" : "set"
                output.write(json: WatchLine.json(change, operation, withPrevious: withPrevious))
            } else {
                WatchLine.write(change, withPrevious: withPrevious, &output)
            }
            missing = missing.map { $0 - 1 }
        }
        return true
    }

    /// What was told before is void: said where the changes are read, and to the person.
    private func handleGap(_ revision: Int64, _ output: inout Output) throws(Failure) -> Bool {
        Output.report("changes before revision \(revision) were missed; the state follows")
        if let command { return try command.run(forGapAt: revision) }
        if isJSON {
            output.write(json: WatchLine.json(gapAt: revision))
        } else {
            output.write("\(revision)\tgap\n")
        }
        return true
    }
}

// MARK: What the options say

extension Client.HandlerStart {
    fileprivate init(_ invocation: Invocation) throws(Failure) {
        let revision = try invocation.number("--from", atLeast: 0)
        guard revision == nil || !invocation.has("--snapshot") else {
            throw .usage("--from and --snapshot: a watch begins with one of them")
        }
        self = revision.map { .revision($0) } ?? (invocation.has("--snapshot") ? .snapshot : .now)
    }
}

extension NamedHandler {
    /// The handler of `--name`; nil where there is none.
    fileprivate init?(_ invocation: Invocation) throws(Failure) {
        guard let name = invocation.text("--name") else {
            guard !invocation.has("--reset") else {
                throw .usage("--reset begins a named handler anew: it needs --name N")
            }
            return nil
        }
        guard invocation.command != nil else {
            throw .usage("--name is for a command: watch PATTERN --name N -- COMMAND")
        }
        let start = try Client.HandlerStart(invocation)
        self.init(name: name, start: start, isReset: invocation.has("--reset"))
    }
}

extension ChangeCommand {
    /// The command behind `--`; nil where there is none.
    fileprivate init?(
        _ invocation: Invocation,
        isNamed: Bool,
        until deadline: Deadline?
    ) throws(Failure) {
        let onError = invocation.text("--on-error")
        guard let arguments = invocation.command else {
            guard onError == nil else {
                throw .usage("--on-error is for a command: watch PATTERN -- COMMAND")
            }
            return nil
        }
        let isJSON = invocation.isJSON
        guard !invocation.has("--previous") || isJSON else {
            throw .usage("--previous with a command needs --json: the command reads the object")
        }
        switch onError ?? (isNamed ? "retry" : "skip") {
        case "retry": retries = true
        case "skip": retries = false
        case let other: throw .usage("--on-error takes retry or skip, not '\(other)'")
        }
        child = ChildCommand(arguments: arguments)
        self.isJSON = isJSON
        withPrevious = invocation.has("--previous")
        self.deadline = deadline
    }
}
