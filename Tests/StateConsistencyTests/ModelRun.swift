import StateEngine
import StateTestSupport
import StateWire

/// A daemon and the model beside it: the same commands to both, every answer compared, with kills and stops between.
final class ModelRun {
    /// What was done.
    struct Totals {
        var commands = 0
        var kills = 0
        var stops = 0
        /// Kills after which something was there that had not been answered.
        var foundMore = 0
        /// Kills after which something that had been sent was not there.
        var foundLess = 0
    }

    private let daemon: Daemon
    private let seed: UInt64
    private var model = ModelKeyspace()
    private var traffic: ModelTraffic
    private var sessions: [Session] = []
    /// When each entry was written and by whom, as first told; neither may change with the daemon's process.
    private var origins: [String: Origin] = [:]
    private(set) var totals = Totals()

    private struct Origin: Equatable {
        let revision: Int64
        let time: Int64?
        let writer: String?
    }

    init(seed: UInt64) throws {
        self.seed = seed
        daemon = try Daemon()
        traffic = ModelTraffic(random: SplitMix(seed: seed))
        try connect()
    }

    /// Every other client speaks RESP2.
    private func connect() throws {
        sessions = try (0..<4).map { try Session(daemon.socketPath, usesRESP3: $0 % 2 == 0) }
    }

    /// One command, one scan, or one end of the daemon.
    ///
    /// - Throws: ``SystemFailure``, naming the seed and how many commands it took.
    func step() throws {
        do {
            try nextStep()
        } catch {
            let place = "STATED_TEST_SEED=\(seed), command \(totals.commands)"
            throw SystemFailure("\(place): \(error)")
        }
    }

    private func nextStep() throws {
        let session = sessions[Int.random(in: 0..<sessions.count, using: &traffic.random)]
        switch Int.random(in: 0..<100, using: &traffic.random) {
        case ..<93: try perform(traffic.next(model), session)
        case ..<96: try scan(session)
        case ..<99: try interrupt(session, kills: true)
        default: try interrupt(session, kills: false)
        }
    }

    // MARK: Commands

    private func perform(_ command: ModelCommand, _ session: Session) throws {
        totals.commands += 1
        guard session.send(command.requests) else {
            throw SystemFailure("'\(command)' was not taken")
        }
        for expected in model.answers(to: command) {
            guard let reply = try session.next() else {
                throw SystemFailure("the connection was lost at '\(command)'")
            }
            try compare(reply, expected, command)
        }
    }

    private func compare(_ reply: Reply, _ expected: Reply, _ command: ModelCommand) throws {
        var told = reply.flattened
        if case .stateGet(let key) = command { told = try withoutOrigin(reply, key) }
        guard told == expected else {
            throw SystemFailure("'\(command)': told \(told.shown), expected \(expected.shown)")
        }
    }

    /// The answer to STATE.GET without when and by whom, which must be what it was before.
    private func withoutOrigin(_ reply: Reply, _ key: String) throws -> Reply {
        guard let pairs = reply.pairs, let revision = reply["revision"]?.integerValue else {
            return reply
        }
        let origin = Origin(
            revision: revision,
            time: reply["time"]?.integerValue,
            writer: reply["by"]?.textValue
        )
        if let before = origins[key], before.revision == revision, before != origin {
            throw SystemFailure("'\(key)' was by \(before) and is by \(origin)")
        }
        origins[key] = origin
        let kept = pairs.filter { $0.key.textValue != "time" && $0.key.textValue != "by" }
        return Reply.map(kept).flattened
    }

    /// Every key once and in order, whoever continues the cursor.
    private func scan(_ session: Session) throws {
        totals.commands += 1
        let (glob, count) = traffic.nextScan()
        var found: [Reply] = []
        var cursor = "0"
        var session = session
        repeat {
            let match = glob.map { ["MATCH", $0] } ?? []
            let words = ["SCAN", cursor] + match + ["COUNT", String(count)]
            let reply = try session.ask(words.map { Array($0.utf8) })
            guard let parts = reply.elements, parts.count == 2, let next = parts[0].textValue,
                let keys = parts[1].elements
            else { throw SystemFailure("\(words) was answered with \(reply.shown)") }
            found += keys
            cursor = next
            session = sessions[Int.random(in: 0..<sessions.count, using: &traffic.random)]
        } while cursor != "0"
        let expected = model.keys(redisGlob: glob ?? "*").map(Reply.text)
        guard found == expected else {
            throw SystemFailure("SCAN of \(glob ?? "everything") told \(Reply.array(found).shown)")
        }
    }

    // MARK: Ends of the daemon

    /// Ends the daemon while it carries commands out; what is there afterwards is what a first part of them makes.
    private func interrupt(_ session: Session, kills: Bool) throws {
        var states = [model]
        var commands: [ModelCommand] = []
        var expected: [[Reply]] = []
        for _ in 0..<Int.random(in: 1...8, using: &traffic.random) {
            var next = states[states.count - 1]
            let command = traffic.next(next)
            commands.append(command)
            expected.append(next.answers(to: command))
            states.append(next)
        }
        let isAwaited = traffic.random.chance(30)
        let some = Int.random(in: 0...expected.joined().count, using: &traffic.random)
        let awaited = isAwaited ? some : 0
        let microseconds = Int64.random(in: 0...400, using: &traffic.random)
        totals.commands += commands.count
        // One write each: what the daemon reads at once it also commits at once.
        let isSent = commands.allSatisfy { session.send($0.requests) }
        var replies = try (0..<awaited).compactMap { _ in try session.next() }
        guard isSent, replies.count == awaited else {
            throw SystemFailure("a living daemon hung up")
        }
        spin(microseconds: microseconds)
        if kills { daemon.kill() } else { try stop() }
        replies += try session.rest()
        let answered = try countAnswered(replies, expected, commands)
        try daemon.start()
        try connect()
        try adopt(states, answered: answered, mayHaveMore: kills)
    }

    private func stop() throws {
        let code = try daemon.stop()
        guard code == 0 else { throw SystemFailure("the daemon ended with exit code \(code)") }
    }

    /// How many commands were wholly answered; all answers must be the expected ones, one for each.
    private func countAnswered(
        _ replies: [Reply],
        _ expected: [[Reply]],
        _ commands: [ModelCommand]
    ) throws -> Int {
        var rest = replies[...]
        for (index, command) in commands.enumerated() {
            for expected in expected[index] {
                guard let reply = rest.popFirst() else { return index }
                try compare(reply, expected, command)
            }
        }
        guard rest.isEmpty else { throw SystemFailure("\(rest.count) answers too many") }
        return commands.count
    }

    /// Finds the state that the daemon came back with, which holds everything that was answered.
    private func adopt(_ states: [ModelKeyspace], answered: Int, mayHaveMore: Bool) throws {
        let (entries, revision) = try observe()
        let last = mayHaveMore ? states.count - 1 : answered
        let possible = states[answered...last].indices.last {
            states[$0].entries == entries && states[$0].revision <= revision
                && revision <= states[states.count - 1].revision
        }
        guard let possible else {
            let end = mayHaveMore ? "killed" : "stopped"
            let differences = states[answered...last].map {
                "expected revision \($0.revision): " + $0.differences(from: entries)
            }
            throw SystemFailure(
                "\(end) after \(answered) of \(states.count - 1) commands were answered, "
                    + "came back at revision \(revision)\n" + differences.joined(separator: "\n")
            )
        }
        if mayHaveMore { totals.kills += 1 } else { totals.stops += 1 }
        let found = states[possible].revision
        if found > states[answered].revision { totals.foundMore += 1 }
        if found < states[last].revision { totals.foundLess += 1 }
        model = states[possible]
        model.revision = revision
    }

    /// Everything that the daemon tells of its entries, in two ways that must agree.
    private func observe() throws -> (entries: [String: ModelKeyspace.Entry], revision: Int64) {
        var entries: [String: ModelKeyspace.Entry] = [:]
        let rows = try sessions[0].ask("STATE.LIST", "/").elements ?? []
        for row in rows {
            guard let key = row.elements?.first?.textValue else {
                throw SystemFailure("STATE.LIST has \(row.shown)")
            }
            let reply = try sessions[0].ask("STATE.GET", key)
            guard let value = reply["value"], let text = value.textValue,
                let revision = reply["revision"], let number = revision.integerValue,
                let created = reply["created"]?.integerValue,
                let version = reply["version"]?.integerValue,
                let owner = reply["owner"]?.integerValue,
                row.elements == [.text(key), value, revision]
            else { throw SystemFailure("STATE.LIST has \(row.shown), STATE.GET \(reply.shown)") }
            _ = try withoutOrigin(reply, key)
            entries[key] = ModelKeyspace.Entry(
                value: text,
                revision: number,
                created: created,
                version: version,
                owner: owner
            )
        }
        guard let revision = try sessions[0].ask("STATE.STATUS")["revision"]?.integerValue,
            try sessions[0].ask("DBSIZE") == .integer(Int64(entries.count))
        else { throw SystemFailure("DBSIZE is not \(entries.count)") }
        return (entries, revision)
    }
}
