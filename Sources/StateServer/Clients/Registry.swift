import StateEngine

/// The connections of a server, and the lists that contain them.
///
/// Used only by the loop thread.
final class Registry {
    let startedAt: Int64
    var store: ServedStore

    private(set) var all: [Int: Connection] = [:]
    private(set) var acceptedCount = 0
    var early = EarlyReplies()
    /// The subjects of the clients.
    var subjects: Subjects
    /// How many connections were ended because the client did not read its messages.
    var letGoCount = 0
    /// The connection that has claimed each named handler, by the name of its metadata.
    var handlers: [String: Connection] = [:]
    /// Connections for which the history is being read.
    var reading: [Int: Connection] = [:]
    /// The memory of clients.
    let memory: ClientMemory
    private var holding: [Connection] = []
    private var paused: [Connection] = []
    private var advancing: [Connection] = []
    /// Commands of closed connections.
    private var endedCommandCount = 0

    init(startedAt: Int64, store: ServedStore, subjects: Subjects, memory: ClientMemory) {
        (self.startedAt, self.store) = (startedAt, store)
        (self.subjects, self.memory) = (subjects, memory)
    }

    /// The number of watches of all connections.
    var watchCount = 0

    var connections: some Collection<Connection> { all.values }
    var count: Int { all.count }
    var commandCount: Int { all.values.reduce(endedCommandCount) { $0 + $1.session.commandCount } }
    var hasPaused: Bool { !paused.isEmpty }
    var hasAdvancing: Bool { !advancing.isEmpty }
    /// Whether exactly one connection holds replies.
    var hasLoneHolder: Bool { holding.count == 1 }

    /// The number of the next connection.
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

    /// Calls `body` for each connection with held replies, and keeps those that still have some.
    func updateHolding(_ body: (Connection) -> Void) {
        holding.removeAll { connection in
            guard !connection.isClosed else { return true }
            body(connection)
            connection.places.isHolding = !connection.outbound.held.isEmpty
            return connection.outbound.held.isEmpty
        }
    }

    /// Whether `body` is true for a paused connection, which may then continue.
    func hasPaused(where body: (Connection) -> Bool) -> Bool {
        paused.contains { !$0.isClosed && body($0) }
    }

    func addPaused(_ connection: Connection) { paused.append(connection) }

    /// Removes the paused connections for which `body` is true, which may then continue.
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

    /// Records that a watcher of the connection is not synced.
    func addAdvancing(_ connection: Connection) {
        guard !connection.places.isAdvancing else { return }
        connection.places.isAdvancing = true
        advancing.append(connection)
    }

    /// Moves the first of them to the end.
    func rotateAdvancing() {
        if advancing.count > 1 { advancing.append(advancing.removeFirst()) }
    }

    /// Keeps the connections for which `body` is true: one of their watchers is not synced yet.
    func updateAdvancing(_ body: (Connection) -> Bool) {
        advancing.removeAll { connection in
            connection.places.isAdvancing = !connection.isClosed && body(connection)
            return !connection.places.isAdvancing
        }
    }
}

/// Properties of the store that is served.
struct ServedStore {
    let isPersistent: Bool
    /// Whether earlier values can be read.
    let hasHistory: Bool
    /// The storage's fields in STATE.STATUS: name and value.
    let report: () -> [(String, String)]
    /// What cannot be read in the store, as a sentence.
    var damage: String?
}

/// Commits whose writers got a reply before they were durable, as their durability level allows.
struct EarlyReplies {
    /// The revisions of those that are not durable yet.
    private var revisions: [Int64] = []
    /// How many such commits failed, and were undone.
    private(set) var undoneCount = 0

    mutating func append(_ revision: Int64) { revisions.append(revision) }

    mutating func settle(through revision: Int64) { revisions.removeAll { $0 <= revision } }

    /// Counts the undone commits from `revision` on.
    mutating func fail(from revision: Int64) -> Int {
        let count = revisions.count { $0 >= revision }
        revisions.removeAll { $0 >= revision }
        undoneCount += count
        return count
    }
}
