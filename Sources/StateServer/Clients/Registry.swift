import StateEngine

/// The connections of a server, and in which lists each of them stands.
///
/// Everything belongs to the loop thread.
final class Registry {
    let startedAt: Int64
    var store: ServedStore

    private(set) var all: [Int: Connection] = [:]
    private(set) var acceptedCount = 0
    var early = EarlyReplies()
    /// Who the clients are.
    var subjects: Subjects
    /// How many clients ended because they did not read their messages.
    var letGoCount = 0
    /// Who has each named handler that somebody has, by its note.
    var handlers: [String: Connection] = [:]
    /// Those for which the history is read.
    var reading: [Int: Connection] = [:]
    /// What clients take.
    let memory: ClientMemory
    private var holding: [Connection] = []
    private var paused: [Connection] = []
    private var advancing: [Connection] = []
    /// Commands of the connections that are gone.
    private var endedCommandCount = 0

    init(startedAt: Int64, store: ServedStore, subjects: Subjects, memory: ClientMemory) {
        (self.startedAt, self.store) = (startedAt, store)
        (self.subjects, self.memory) = (subjects, memory)
    }

    /// Watches of all connections.
    var watchCount = 0

    var connections: some Collection<Connection> { all.values }
    var count: Int { all.count }
    var commandCount: Int { all.values.reduce(endedCommandCount) { $0 + $1.session.commandCount } }
    var hasPaused: Bool { !paused.isEmpty }
    var hasAdvancing: Bool { !advancing.isEmpty }
    /// Whether exactly one connection holds replies.
    var hasLoneHolder: Bool { holding.count == 1 }

    /// The number that the next connection has.
    func takeNumber() -> Int {
        acceptedCount += 1
        return acceptedCount
    }

    func add(_ connection: Connection) {
        all[connection.number] = connection
        memory.add(connection)
    }

    func remove(_ connection: Connection) {
        all[connection.number] = nil
        memory.remove(connection)
        endedCommandCount += connection.session.commandCount
    }

    // MARK: Lists

    func addHolding(_ connection: Connection) {
        guard !connection.places.isHolding else { return }
        connection.places.isHolding = true
        holding.append(connection)
    }

    /// Calls `body` for each connection that holds replies, and keeps those that still do.
    func updateHolding(_ body: (Connection) -> Void) {
        holding.removeAll { connection in
            guard !connection.isClosed else { return true }
            body(connection)
            connection.places.isHolding = !connection.outbound.held.isEmpty
            return connection.outbound.held.isEmpty
        }
    }

    /// Whether `body` says of a paused connection that it may go on.
    func hasPaused(where body: (Connection) -> Bool) -> Bool {
        paused.contains { !$0.isClosed && body($0) }
    }

    func addPaused(_ connection: Connection) { paused.append(connection) }

    /// Takes out the paused connections of which `body` says that they may go on.
    func takePaused(where body: (Connection) -> Bool) -> [Connection] {
        var ready: [Connection] = []
        paused.removeAll { connection in
            if connection.isClosed { return true }
            guard body(connection) else { return false }
            ready.append(connection)
            return true
        }
        return ready
    }

    /// Notes that a watcher of the connection is not synced.
    func addAdvancing(_ connection: Connection) {
        guard !connection.places.isAdvancing else { return }
        connection.places.isAdvancing = true
        advancing.append(connection)
    }

    /// The first of them comes last the next time.
    func rotateAdvancing() {
        if advancing.count > 1 { advancing.append(advancing.removeFirst()) }
    }

    /// Keeps the connections of which `body` says that a watcher of theirs is not synced yet.
    func updateAdvancing(_ body: (Connection) -> Bool) {
        advancing.removeAll { connection in
            connection.places.isAdvancing = !connection.isClosed && body(connection)
            return !connection.places.isAdvancing
        }
    }
}

/// What is known of the store that is served.
struct ServedStore {
    let isPersistent: Bool
    /// Whether former values can be read.
    let hasHistory: Bool
    /// What the storage reports to STATE.STATUS: name and value.
    let report: () -> [(String, String)]
    /// What of the store cannot be read, in a sentence.
    var damage: String?
}

/// Commits that were answered before they were durable, because their writers asked for no more.
struct EarlyReplies {
    /// Of those that are not durable yet.
    private var revisions: [Int64] = []
    /// How many such commits failed, and were undone.
    private(set) var undoneCount = 0

    mutating func append(_ revision: Int64) { revisions.append(revision) }

    mutating func settle(through revision: Int64) { revisions.removeAll { $0 <= revision } }

    /// Counts the commits from `revision` on, which were undone.
    mutating func fail(from revision: Int64) -> Int {
        let count = revisions.count { $0 >= revision }
        revisions.removeAll { $0 >= revision }
        undoneCount += count
        return count
    }
}
