import StateClient
import StateJSON
import StateModel
import StateWire

extension Statectl {
    /// `complete -- WORD…`: how the last word may go on, for the completion of a shell.
    static func complete(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        let line = CompletedLine(invocation.operands)
        // What cannot be asked for in time is not offered: a key that is being pressed is no place
        // for an error.
        let named = line.socket ?? invocation.text("--socket")
        let candidates = try? Completion(
            line,
            socket: invocation.socketChoice(of: named, line.daemon)
        )
        .candidates()
        // A shell shows names as they are, and a line end in one would begin another candidate.
        for candidate in candidates ?? [] where candidate.isPlain { output.write(candidate.line) }
    }
}

extension Statectl {
    /// `completion SHELL`: what the shell has to read.
    static func completion(_ invocation: Invocation, _ output: inout Output) throws(Failure) {
        switch String(decoding: invocation.operands[0], as: UTF8.self) {
        case "bash": output.write(PackageResources.statectl_bash)
        case "zsh": output.write(PackageResources._statectl)
        case "fish": output.write(PackageResources.statectl_fish)
        case let shell: throw .usage("completion: bash, zsh or fish, not '\(shell)'")
        }
    }
}

/// How a word may go on.
private struct Completion {
    let line: CompletedLine
    let socket: SocketLocation.Choice
    /// When the person at the keyboard has waited enough.
    private let deadline = Deadline(after: .milliseconds(100))
    /// More than anybody reads.
    private static let countLimit = 1_000
    /// Of the revisions of a key, so many are offered.
    private static let revisionCount = 20

    /// A line of the output: its first character says what the rest is.
    struct Candidate {
        let kind: Character
        let text: [UInt8]
        var line: [UInt8] { String(kind).bytes + text + "\n".bytes }
        /// Whether the text is shown as what it is.
        var isPlain: Bool { text.withUnsafeBytes { UTF8Sequence.isPlain($0) } }
    }

    init(_ line: CompletedLine, socket: SocketLocation.Choice) {
        (self.line, self.socket) = (line, socket)
    }

    func candidates() throws(StateError) -> [Candidate] {
        switch line.meaning {
        case .verb: words(Verb.all.map(\.name).filter { !Verb.ofPrograms.contains($0) } + ["help"])
        case .option: words(line.options.map(\.name))
        case .choice(let choices): words(choices)
        case .key: try names(below: [])
        case .lock: try names(below: "locks/".bytes)
        case .revision: words(try revisions().map { String($0) })
        case .handler: words(try client().handlers().map(\.name))
        case .file: [Candidate(kind: "f", text: [])]
        case .command: [Candidate(kind: "c", text: [])]
        case .text: []
        }
    }

    /// Those of the texts that begin as the value does.
    private func words(_ texts: [String]) -> [Candidate] {
        texts.map(\.bytes).filter { $0.starts(with: line.value) }
            .map { Candidate(kind: "w", text: line.fixed + $0) }
    }

    private func client() throws(StateError) -> Client {
        let left = Duration.milliseconds(max(1, Int64(deadline.millisecondsLeft)))
        return try Client(socket, timeout: left)
    }

    /// The revisions that the key before has had, newest first; without one, the current.
    private func revisions() throws(StateError) -> [Int64] {
        let text = line.verb?.name == "diff" ? nil : line.operands.first
        if let text, let key = try? Key(bytes: text) {
            let changes = try client().history(of: key, limit: Self.revisionCount)
            if !changes.isEmpty { return changes.map(\.revision) }
        }
        return try client().status().filter { $0.name == "revision" }.compactMap(\.number)
    }

    /// The keys of the level that the value is in, and the prefixes, which end in `/`.
    private func names(below root: [UInt8]) throws(StateError) -> [Candidate] {
        let slash = UInt8(ascii: "/")
        let typed = root + line.value
        let prefix = Array(typed[..<((typed.lastIndex(of: slash) ?? -1) + 1)])
        let pattern = prefix.isEmpty ? Pattern.everything : try Invocation.literal(prefix)
        // A name is after what it begins with; the name itself is asked for.
        var names = try client().children(of: pattern, after: typed == prefix ? nil : typed)
        // It may be one that this user may not read.
        var found = (try? isKey(typed)) ?? false ? [typed] : []
        while found.count < Self.countLimit, !deadline.hasPassed, let page = try names.next() {
            let matching = page.filter { $0.starts(with: typed) }
            found += matching
            if matching.count < page.count { break }
        }
        return found.prefix(Self.countLimit).map { name in
            let shown = Array(name.dropFirst(root.count))
            return Candidate(kind: name.last == slash ? "p" : "w", text: line.fixed + shown)
        }
    }

    private func isKey(_ text: [UInt8]) throws(StateError) -> Bool {
        guard let key = try? Key(bytes: text) else { return false }
        return try client().value(for: key) != nil
    }
}
