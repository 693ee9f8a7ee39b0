import Glibc
import StateEngine
import StateLog
import StateSQLite
import StateTestSupport
import StateWire

/// A server over a store on a disk that fails: two writers who send a commit each at a time, a reader and a watcher.
///
/// It remembers what each key must have; what any reply says against it is a fault.
struct FailingDisk {
    /// Where the log is.
    let files: FaultyFiles
    /// What SQLite does.
    let faults: Faults
    let backing: SQLiteBacking
    let server: ServedKeyspace
    let data: String
    private let directory: TemporaryDirectory
    private let writers: [Peer]
    private let reader: Peer
    private let watcher: Peer

    private(set) var stepCount = 0
    /// What every key has, as far as it was told.
    private(set) var values: [String: String] = [:]
    /// What keys may have instead: commits whose outcome is unknown.
    private var unknown: [[String: String]] = []
    /// Errors that writers were answered with.
    private(set) var errors: [StateError] = []
    /// What was wrong.
    private(set) var findings: [String] = []

    /// Serves an empty store that is settled every 20 commits or so.
    ///
    /// `patience` is for how many nanoseconds a commit is tried again.
    init(patience: Int64? = nil) throws {
        directory = try TemporaryDirectory()
        data = directory.path(of: "data")
        mkdir(data, 0o700)
        faults = try Faults(below: data)
        try LocalKeyspace(backing: StoredHistory.backing(data)).close()
        files = FaultyFiles(try LogDirectory(data + "/log"))
        backing = StoredHistory.backing(data, files, patience: patience)
        server = try ServedKeyspace(backing)
        writers = try [server.connect(), server.connect()]
        reader = try server.connect()
        watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH /")
    }

    /// Both writers send a commit, then each has its reply, then the reader reads what they wrote to.
    ///
    /// Where an outcome is unknown, it then waits until writes are taken again.
    mutating func step() throws {
        stepCount += 1
        let sets = (0..<writers.count).map { changes(of: $0) }
        for (writer, set) in zip(writers, sets) {
            let pairs = set.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            try writer.send("MSET " + pairs.joined(separator: " "))
        }
        for (writer, set) in zip(writers, sets) { note(try reply(to: writer), to: set) }
        if !unknown.isEmpty { try awaitWrites() }
        for key in sets.flatMap(\.keys) where unknown.isEmpty { try read(key) }
    }

    /// Both writers send a commit while the log takes none.
    mutating func refusedStep() throws {
        stepCount += 1
        let sets = (0..<writers.count).map { changes(of: $0) }
        for (writer, set) in zip(writers, sets) {
            let pairs = set.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            try writer.send("MSET " + pairs.joined(separator: " "))
        }
        for (writer, set) in zip(writers, sets) {
            let reply = try reply(to: writer)
            if !isError(reply) { findings.append("it is answered with \(reply.shown)") }
            note(reply, to: set)
        }
        for key in sets.flatMap(\.keys) { try read(key) }
        files.heal()
        try awaitWrites()
    }

    /// What a writer is answered; why not, if it is not.
    private func reply(to writer: Peer) throws -> Reply {
        do {
            return try writer.next()
        } catch {
            throw SystemFailure(
                "\(error); a write is answered with \(try reader.ask("SET why why").shown)"
            )
        }
    }

    /// A commit of two keys.
    private func changes(of writer: Int) -> [String: String] {
        let value = "\(writer).\(stepCount)"
        let padding = String(repeating: "x", count: stepCount % 7 == 0 ? 9_000 : 40)
        return [
            "\(writer)/\(stepCount % 5)": "\(value).\(padding)",
            "\(writer)/\(5 + stepCount % 3)": value,
        ]
    }

    private mutating func note(_ reply: Reply, to changes: [String: String]) {
        switch reply {
        case .simple("OK"):
            values.merge(changes) { $1 }
        case .error(let error):
            errors.append(error)
            if error.isOutcomeUnknown { unknown.append(changes) }
        default:
            findings.append("MSET was answered with \(reply.shown)")
        }
    }

    /// A read is answered whatever the disk does, with what was told last.
    private mutating func read(_ key: String) throws {
        let reply = try reader.ask("GET \(key)")
        guard reply != values[key].map({ .bulk(Array($0.utf8)) }) ?? .null else { return }
        let told = values[key]?.prefix(20) ?? "null"
        findings.append("\(key) is \(reply.shown.prefix(60)), told was \(told)")
    }

    /// Waits until writes are taken again, and finds out what became of those whose outcome is unknown.
    private mutating func awaitWrites() throws {
        let deadline = ContinuousClock.now + .seconds(10)
        var reply = Reply.null
        repeat {
            guard try !isError(reader.ask("GET 0/0")) else {
                findings.append("reads are refused while the store is opened again")
                return
            }
            reply = try writers[0].ask("SET again \(stepCount)")
        } while isError(reply) && ContinuousClock.now < deadline
        guard reply == .simple("OK") else {
            findings.append("writes are not taken again within 10 s: \(reply.shown)")
            return
        }
        values["again"] = String(stepCount)
        // Each happened whole or not at all, whichever came first.
        for changes in unknown {
            let isThere = try changes.map { key, value in
                try reader.ask("GET \(key)") == .bulk(Array(value.utf8))
            }
            if isThere.contains(true) { values.merge(changes) { $1 } }
        }
        unknown = []
    }

    private func isError(_ reply: Reply) -> Bool {
        if case .error = reply { true } else { false }
    }

    /// Stops, and compares all that was told with what a start finds; not where something is wrong already.
    mutating func finish() throws {
        guard findings.isEmpty else { return server.stop() }
        for (number, peer) in (writers + [reader]).enumerated() {
            let reply = try peer.ask("PING \(number)")
            if reply != .bulk(Array(String(number).utf8)) {
                findings.append("one reply too many: \(reply.shown)")
            }
        }
        values["end"] = "end"
        if isError(try writers[0].ask("SET end end")) { values["end"] = nil }
        let events = try values["end"] == nil ? watcher.arrived() : pushesToEnd()
        server.stop()
        let stored = try StoredHistory(data)
        if stored.values != values { findings.append(difference(stored.values)) }
        let rows = stored.rows.map { Told.Change(key: $0.key, value: $0.value) }
        if FailingDisk.changes(in: events) != rows {
            findings.append("events are not the commits that the store has")
        }
    }

    private func pushesToEnd() throws -> [Reply] {
        var pushes: [Reply] = []
        repeat { pushes.append(try watcher.next()) } while !pushes.last.isEnd
        return pushes
    }

    private static func changes(in pushes: [Reply]) -> [Told.Change] {
        pushes.flatMap { $0.elements?.last?.elements ?? [] }.map { row in
            Told.Change(
                key: row.elements?.first?.textValue ?? "",
                value: row.elements?.last?.textValue
            )
        }
    }

    private func difference(_ stored: [String: String]) -> String {
        let keys = Set(stored.keys).union(values.keys).filter { stored[$0] != values[$0] }
        let lines = keys.sorted().map { key in
            "\(key): stored \(stored[key]?.prefix(20) ?? "nothing"), "
                + "told \(values[key]?.prefix(20) ?? "nothing")"
        }
        return "the store is not what was told: " + lines.joined(separator: "; ")
    }
}

extension Reply? {
    /// Whether this is the event of the last commit of a run.
    fileprivate var isEnd: Bool {
        self?.elements?.last?.elements?.contains {
            $0.elements?.first?.textValue == "end"
        } ?? false
    }
}

extension StateError {
    /// Whether the commit may have happened and may not.
    var isOutcomeUnknown: Bool { code == .readOnly && message.hasPrefix("outcome unknown") }
}
