import StateClient
import StateModel

extension Statectl {
    /// `watch PATTERN…`: a line, or a run of the command, for each change.
    static func watch(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        var watcher = try Watcher(invocation)
        try watcher.run(&output)
    }
}

/// A watch, and the output or the command for its changes.
private struct Watcher {
    private var watch: ResumedWatch
    private let ready: ReadyNotice?
    private let command: ChangeCommand?
    private let isJSON: Bool
    private let line: WatchLine
    private let isLatest: Bool
    /// Whether the daemon remembers the position: then only complete commits are handled.
    private let isNamed: Bool
    /// Whether changes since the last report are to be reported at the end of this round, or a
    /// snapshot is still to come.
    private var isInRound = true
    /// How many changes are still to come; nil for no end.
    private var missing: Int64?

    init(_ invocation: Invocation) throws(Failure) {
        ready = try ReadyNotice(invocation)
        isJSON = invocation.isJSON
        line = WatchLine(invocation)
        isLatest = invocation.has("--latest")
        guard !isLatest || !line.withPrevious else {
            throw .usage(
                "watch: --previous does not work with --latest, which skips values in between"
            )
        }
        missing = try invocation.number("--count", atLeast: 1)
        let deadline = try invocation.duration("--timeout").map { Deadline(after: $0) }
        let handler = try NamedHandler(invocation)
        isNamed = handler != nil
        command = try ChangeCommand(invocation, isNamed: isNamed, until: deadline)
        let start = try Client.HandlerStart(invocation)
        if case .revision(let revision) = start, !isNamed {
            try Watcher.requirePast(revision, invocation, until: deadline)
        }
        watch = try ResumedWatch(
            invocation,
            try invocation.operands.map(Invocation.pattern),
            from: start,
            ResumedWatch.Options(latest: isLatest, previous: line.withPrevious),
            for: handler,
            until: deadline,
            needsReader: true
        )
    }

    /// Refuses a revision that does not exist yet: the daemon would answer with all that it has.
    private static func requirePast(
        _ revision: Int64,
        _ invocation: Invocation,
        until deadline: Deadline?
    ) throws(Failure) {
        let client = try invocation.firstClient(until: deadline, needsReader: true)
        let fields = try attempt(try client.status())
        guard let current = fields.first(where: { $0.name == "revision" })?.number,
            revision > current
        else { return }
        throw .usage("watch: --from \(revision) is above the current revision, \(current)")
    }

    mutating func run(_ output: inout Output) throws(Failure) {
        try ready?.send(watch.revision)
        if isJSON, command == nil {
            output.write(json: ["revision": .number(watch.revision), "op": .text("ready")])
            try output.flush()
        }
        while let event = try watch.next() {
            guard try handle(event, &output) else { break }
            try output.flush()
            // A named handler ends only after a complete commit or round, whose position is
            // reported.
            if let missing, missing <= 0, !isNamed || !isInRound { return }
        }
        // The deadline passed.
        if missing != nil { throw .negative }
    }

    /// Handles one event.
    ///
    /// Returns false if the deadline passed before that was done.
    private mutating func handle(
        _ event: Client.Event,
        _ output: inout Output
    ) throws(Failure) -> Bool {
        switch event {
        case .commit(_, let revision, let changes):
            guard try handle(changes, isState: false, &output) else { return false }
            // A round of latest values is complete only with its synced event.
            isInRound = isLatest
            if !isLatest { try watch.finish(revision) }
        case .piece(_, let changes):
            isInRound = true
            return try handle(changes, isState: true, &output)
        case .gap(_, let revision):
            isInRound = true
            return try handleGap(revision, &output)
        case .synced(_, let revision):
            // An empty round only reports how far the daemon is.
            if isInRound { try watch.finish(revision) } else { try watch.advance(to: revision) }
            isInRound = false
        case .progress(_, let revision): try watch.advance(to: revision)
        case .away(_, let revision): writeNotice("away", revision, &output)
        case .current(_, let revision): writeNotice("current", revision, &output)
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
                output.write(json: line.json(change, operation))
            } else {
                line.write(change, &output)
            }
            missing = missing.map { $0 - 1 }
        }
        return true
    }

    /// Reports whether the copy of a cluster may be behind.
    private func writeNotice(_ word: String, _ revision: Int64, _ output: inout Output) {
        if command != nil { return }
        if isJSON {
            output.write(json: ["revision": .number(revision), "op": .text(word)])
        } else {
            output.write("\(revision)\t\(word)\n")
        }
    }

    /// Reports that the changes delivered before are void, in the output and on standard error.
    private func handleGap(_ revision: Int64, _ output: inout Output) throws(Failure) -> Bool {
        Output.report("changes before revision \(revision) were missed; the current state follows")
        if let command { return try command.run(forGapAt: revision) }
        if isJSON {
            output.write(json: WatchLine.json(gapAt: revision))
        } else {
            output.write("\(revision)\tgap\n")
        }
        return true
    }
}

// MARK: Options

extension Client.HandlerStart {
    fileprivate init(_ invocation: Invocation) throws(Failure) {
        let revision = try invocation.number("--from", atLeast: 0)
        guard revision == nil || !invocation.has("--snapshot") else {
            throw .usage("watch: give only one of --from and --snapshot")
        }
        self = revision.map { .revision($0) } ?? (invocation.has("--snapshot") ? .snapshot : .now)
    }
}

extension NamedHandler {
    /// The handler of `--name`; nil without that option.
    fileprivate init?(_ invocation: Invocation) throws(Failure) {
        guard let name = invocation.text("--name") else {
            guard !invocation.has("--reset") else {
                throw .usage("watch: --reset needs --name N, the handler to begin anew")
            }
            return nil
        }
        guard invocation.command != nil else {
            throw .usage("watch: --name needs a command: watch PATTERN --name N -- COMMAND")
        }
        let start = try Client.HandlerStart(invocation)
        self.init(name: name, start: start, isReset: invocation.has("--reset"))
    }
}

extension WatchLine {
    fileprivate init(_ invocation: Invocation) {
        self.init(
            withPrevious: invocation.has("--previous"),
            withTime: invocation.has("--time")
        )
    }
}

extension ChangeCommand {
    /// The command after `--`; nil if there is none.
    fileprivate init?(
        _ invocation: Invocation,
        isNamed: Bool,
        until deadline: Deadline?
    ) throws(Failure) {
        let onError = invocation.text("--on-error")
        guard let arguments = invocation.command else {
            guard onError == nil else {
                throw .usage("watch: --on-error needs a command: watch PATTERN -- COMMAND")
            }
            return nil
        }
        let isJSON = invocation.isJSON
        for option in ["--previous", "--time"] where invocation.has(option) && !isJSON {
            throw .usage("watch: \(option) with a command needs --json")
        }
        switch onError ?? (isNamed ? "retry" : "skip") {
        case "retry": retries = true
        case "skip": retries = false
        case let other: throw .usage("--on-error takes retry or skip, not '\(other)'")
        }
        child = try ChildCommand(arguments: arguments)
        self.isJSON = isJSON
        line = WatchLine(invocation)
        self.deadline = deadline
    }
}
