import Glibc

/// One client, or several of one user, that abuse the daemon.
final class Abuser {
    private let kind: AbuseKind
    private let socket: String
    private let poller: Poller
    private var clients: [Connection?] = []
    private let request: [UInt8]
    /// Watches that stay, so that the ending ones are among many.
    private var bystanders: [Connection] = []

    init(_ kind: AbuseKind, socket: String) throws(BenchError) {
        self.kind = kind
        self.socket = socket
        poller = try Poller()
        var queue = ByteQueue(capacity: 1 << 20)
        for command in kind.request { queue.append(command: command) }
        request = Array(queue.bytes) + kind.half
        for number in 0..<kind.bystanderCount {
            bystanders.append(try connect(number: -1 - number))
        }
        clients = Array(repeating: nil, count: kind.connectionCount)
    }

    /// Sets the values that the abuse needs.
    static func prepare(_ kind: AbuseKind, socket: String) throws(BenchError) {
        guard kind.largeByteCount > 0 else { return }
        let connection = try Connection(socket: socket)
        let value = String(repeating: "v", count: kind.largeByteCount)
        for _ in 0..<6 { try connection.ask("SET", AbuseKind.large, value) }
    }

    /// Runs until this process or its parent ends.
    func run() throws(BenchError) {
        let parent = getppid()
        var arrivedAt = MonotonicClock.now
        while getppid() == parent {
            if kind.leavesTogether, MonotonicClock.now > arrivedAt + 500_000_000 {
                for number in clients.indices { leave(number) }
            }
            for number in clients.indices where clients[number] == nil {
                try arrive(number)
                arrivedAt = MonotonicClock.now
            }
            try poller.wait(milliseconds: 10) { (number, isWritable) throws(BenchError) in
                guard number >= 0, let client = clients[number] else { return }
                if kind.reads, case .cut = try client.receive() { return leave(number) }
                client.consumeReceived(client.receivedBytes.count)
                if isWritable || client.output.isEmpty { try send(number) }
            }
            // With unread replies, the poller always returns at once.
            if !kind.reads { MonotonicClock.pause(microseconds: 1_000) }
        }
    }

    private func connect(number: Int) throws(BenchError) -> Connection {
        let connection = try Connection(socket: socket)
        // Pushes may arrive between the replies; both are discarded.
        for command in kind.preparation(of: number) { connection.output.append(command: command) }
        guard try connection.flush() else { throw .failed("the connection was closed") }
        try connection.becomeNonBlocking()
        if number >= 0 { try poller.add(connection.descriptor, number: number) }
        return connection
    }

    private func arrive(_ number: Int) throws(BenchError) {
        // If the connection is refused, the daemon has ended the abuse; try again.
        guard let connection = try? connect(number: number) else { return }
        clients[number] = connection
        try send(number)
    }

    /// Sends the request again if the last one was sent completely.
    private func send(_ number: Int) throws(BenchError) {
        guard let client = clients[number] else { return }
        let isNew = client.output.isEmpty
        let repeats = kind != .half && !kind.leavesTogether
        if isNew, repeats || client.isFresh {
            request.withUnsafeBytes { client.output.append($0) }
            client.isFresh = false
        }
        guard try client.flush(poller, number: number) else { return leave(number) }
        if kind.leaves, client.output.isEmpty { leave(number) }
    }

    private func leave(_ number: Int) {
        if let client = clients[number] { poller.remove(client.descriptor) }
        clients[number] = nil
    }
}

/// The process of an abuser; if this program is root, it runs as another user.
enum AbuserCommand {
    /// The longest run, whatever happens to other processes.
    private static let secondsAtMost: UInt32 = 300

    static func run(_ options: Options) throws(BenchError) {
        alarm(secondsAtMost)
        let name = try options.text("kind")
        guard let kind = AbuseKind(rawValue: name) else {
            throw .usage("--kind expects one of \(AbuseKind.names), not '\(name)'")
        }
        let socket = try options.text("socket")
        // The daemon is measured, not the scheduler: a process of the lowest nice value keeps a
        // processor until the next tick.
        var none = sched_param()
        guard sched_setscheduler(0, idleScheduling, &none) == 0 else {
            throw .system("SCHED_IDLE")
        }
        try become(options.text("user", standard: ""))
        try Abuser.prepare(kind, socket: socket)
        try Abuser(kind, socket: socket).run()
    }

    /// SCHED_IDLE of sched(7), a macro that Swift does not see.
    private static let idleScheduling: Int32 = 5

    private static func become(_ user: String) throws(BenchError) {
        guard !user.isEmpty, geteuid() == 0 else { return }
        guard let entry = getpwnam(user) else { throw .usage("user '\(user)' does not exist") }
        let (uid, gid) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
        guard initgroups(user, gid) == 0, setgid(gid) == 0, setuid(uid) == 0 else {
            throw .system("becoming \(user)")
        }
    }
}

extension AbuseKind {
    static var names: String { allCases.map(\.rawValue).joined(separator: ",") }
}
