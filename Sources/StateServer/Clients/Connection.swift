import CLinux
import Glibc
import StateEngine
import StateWire

/// One client: its socket, its input and its output.
///
/// Used only by the loop thread.
final class Connection {
    let descriptor: Int32
    /// Increasing and unique: CLIENT ID, and the registration number in epoll.
    let number: Int
    let peer: clinux_peer
    /// The subject of the peer for access rules.
    private(set) var subject: Subject
    let connectedAt: Int64
    var inbound: Inbound
    var outbound = Outbound()
    var session = Session()
    var watches = WatchSet()
    /// Whose end deletes the keys that it sets with a lifetime; set once.
    var holders: ConnectionHolders?
    var share = MemoryShare()
    var places = Places()
    /// The events that epoll reports.
    var interest = Poller.readableOnce
    var ending = Ending()
    var isClosed = false

    /// Why the connection must end.
    struct Ending {
        /// The peer has closed its side, or there is nothing more to do once everything is sent.
        var isDue = false
        /// It did not read its messages: its waiting output is dropped.
        var isLetGo = false
        /// The reason is that the subscriptions of its user take too long.
        var isBehind = false
        /// CLIENT KILL: it ends at once.
        var isKilled = false
        /// It waits for the slice in which it ends.
        var isLeaving = false
    }

    /// The part of a connection in the memory for clients; ``ClientMemory`` counts it.
    struct MemoryShare {
        var account: ClientMemory.Account?
        var byteCount = 0
        var inputByteCount = 0
    }

    /// The lists of the server that contain the connection.
    struct Places {
        /// Connections whose output continues after others were served.
        var hasUnfinishedOutput = false
        /// Connections to flush.
        var isFlushed = false
        /// Its replies are sent after those to others, for it would go on at once and take their processor: the
        /// link of a cluster.
        var isFlushedLast = false
        /// Connections with watches that are not synced.
        var isAdvancing = false
        /// Connections with held replies.
        var isHolding = false
        /// Connections with an incomplete command.
        var frame: FrameTimer.Place?
    }

    init(
        descriptor: Int32,
        number: Int,
        limits: FrameParser.Limits,
        subjects: inout Subjects,
        at time: Int64
    ) {
        self.descriptor = descriptor
        self.number = number
        var peer = clinux_peer()
        // A socket that is not a Unix socket has no credentials, so the peer gets no rights.
        if clinux_peer_credentials(descriptor, &peer) != 0 {
            peer = clinux_peer(pid: 0, uid: .max, gid: .max)
        }
        self.peer = peer
        subject = subjects.subject(of: peer, on: descriptor)
        connectedAt = time
        inbound = Inbound(parser: FrameParser(limits: limits))
    }

    /// Finds the subject again, because rules name units now, or none any more.
    func identify(_ subjects: inout Subjects) {
        subject = subjects.subject(of: peer, on: descriptor)
    }

    /// Input bytes that are not executed yet: an incomplete command, or commands queued for EXEC.
    var unfinishedByteCount: Int {
        inbound.bytes.count + (session.transaction?.byteCount ?? 0)
    }

    /// Whether so much is to be taken apart at its end that others would notice.
    var leavesMuch: Bool {
        watches.all.count + session.subscriptions.count + session.watchedKeys.count > 32
    }

    /// Frees its memory at once: it has ended, but lists may keep it for a while.
    func releaseMemory() {
        inbound.bytes.removeAll()
        inbound.bytes.shrink(to: 0)
        outbound = Outbound()
        session.transaction = nil
    }

    // MARK: The socket

    enum Received {
        case bytes(Int)
        case nothing
        case end
    }

    /// Reads available input, at most `byteCount` bytes, to the end of `buffer`.
    func receive(into buffer: inout ByteBuffer, _ byteCount: Int) -> Received {
        while true {
            let count = clinux_receive(descriptor, buffer.reserve(byteCount), byteCount)
            if count > 0 {
                buffer.extend(by: count)
                return .bytes(count)
            }
            if count == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .nothing
            case EBADF, EFAULT: preconditionFailure("recv of descriptor \(descriptor)")
            default: return .end
            }
        }
    }

    /// Sends output, at most 256 KiB: otherwise a client that reads as fast as this sends would
    /// make the others wait.
    ///
    /// - Returns: Whether the connection is still open.
    func flush() -> Bool { outbound.flush(to: descriptor) }

    /// Whether the peer has closed its socket.
    ///
    /// The kernel knows at once; the event may still be queued after another.
    var hasHungUp: Bool {
        var state = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&state, 1, 0) > 0
    }

    /// Whether the process that connected has exited, as far as the daemon can see processes.
    ///
    /// Its socket may still be open in a child that has not yet executed another program.
    var hasExited: Bool { peer.pid > 0 && kill(peer.pid, 0) != 0 && errno == ESRCH }

    // MARK: The session

    /// The command name of the peer from the kernel; a hint.
    var peerCommand: String {
        let file = open("/proc/\(peer.pid)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        return withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            let count = read(file, buffer.baseAddress, buffer.count)
            guard count > 1 else { return "" }
            return String(decoding: buffer[..<(count - 1)], as: UTF8.self)
        }
    }
}

/// The connections of a server, and the lists that contain them.
///
/// Used only by the loop thread.
final class Registry {
    let startedAt: Int64
    var store: ServedStore

    private(set) var all: [Int: Connection] = [:]
    /// The same by their descriptors.
    private var byDescriptor: [Connection?] = []
    var counts = Counts()
    var early = EarlyReplies()
    var subjects: Subjects
    var observers = Observers()
    /// CLIENT PAUSE; nil if clients are not paused.
    var pause: ClientPause?
    /// The connection that has claimed each named handler, by the name of its metadata.
    var handlers: [String: Connection] = [:]
    /// Connections for which the history is being read.
    var reading: [Int: Connection] = [:]
    /// The memory of clients.
    let memory: ClientMemory
    private var holding: [Connection] = []
    private var paused: [Connection] = []
    private var advancing: [Connection] = []

    init(startedAt: Int64, store: ServedStore, subjects: Subjects, memory: ClientMemory) {
        (self.startedAt, self.store) = (startedAt, store)
        (self.subjects, self.memory) = (subjects, memory)
    }

    var connections: some Collection<Connection> { all.values }
    var count: Int { all.count }
    var commandCount: Int {
        all.values.reduce(counts.endedCommands) { $0 + $1.session.usage.commandCount }
    }

    var hasPaused: Bool { !paused.isEmpty }
    var hasAdvancing: Bool { !advancing.isEmpty }
    /// How many connections hold replies until commits are durable.
    var holderCount: Int { holding.count }

    /// CONFIG RESETSTAT.
    func resetCounts() {
        counts.before = (counts.accepted, commandCount)
        counts.letGo = 0
    }

    /// Gives no number that a connection of the last process may have.
    func continueNumbers(after last: Int) {
        (counts.accepted, counts.before.accepted) = (last, last)
    }

    /// The number of the next connection.
    func takeNumber() -> Int {
        counts.accepted += 1
        return counts.accepted
    }

    func add(_ connection: Connection) {
        all[connection.number] = connection
        let missing = Int(connection.descriptor) + 1 - byDescriptor.count
        if missing > 0 { byDescriptor += Array(repeating: nil, count: missing) }
        byDescriptor[Int(connection.descriptor)] = connection
        memory.add(connection)
    }

    func remove(_ connection: Connection) {
        all[connection.number] = nil
        byDescriptor[Int(connection.descriptor)] = nil
        memory.remove(connection)
        counts.endedCommands += connection.session.usage.commandCount
    }

    /// The connection with this descriptor, if it has this number.
    func connection(_ descriptor: Int, _ number: Int) -> Connection? {
        guard descriptor < byDescriptor.count, let found = byDescriptor[descriptor] else {
            return nil
        }
        return found.number == number ? found : nil
    }

    // MARK: Lists

    func addHolding(_ connection: Connection) {
        guard !connection.places.isHolding else { return }
        connection.places.isHolding = true
        memory.noteHolding(connection, begins: true)
        holding.append(connection)
    }

    /// Calls `body` for each connection with held replies, and keeps those that still have some.
    func updateHolding(_ body: (Connection) -> Void) {
        holding.removeAll { connection in
            if !connection.isClosed { body(connection) }
            connection.places.isHolding =
                !connection.isClosed && !connection.outbound.held.isEmpty
            if !connection.places.isHolding { memory.noteHolding(connection, begins: false) }
            return !connection.places.isHolding
        }
    }

    /// Whether `body` is true for a paused connection, which may then continue.
    func hasPaused(where body: (Connection) -> Bool) -> Bool {
        paused.contains { !$0.isClosed && body($0) }
    }

    /// Adds a connection whose condition is looked at in each turn.
    ///
    /// One that waits for a late reply is added when that is sent: there may be thousands.
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
