import CFuzzer
import Glibc
import StateContainers
import StateEngine
import StateJSON
import StateRules
import StateSQLite
import StateServer
import StateTestSupport
import StateWire

/// A whole server, to which up to four connections send what they like, cut anywhere; afterwards the keyspace is sound.
///
/// ```
/// 0  1: values are on disk   2: there are rules, of which nobody is free   4: replies are limited to 4 KiB
/// 1  seed of the cuts
/// 2  what the connections send; FE and a byte: the connection that goes on; FF: what was sent is carried out first
/// ```
enum ServerTarget {
    private static let rules = """
        {"rules": [
            {"keys": "n/", "schema": {"type": "number", "minimum": 0, "multipleOf": 0.5}},
            {"keys": "s/", "schema": {"type": ["object", "array", "string"], "pattern": "^[a-z{\\\\[]*", "maxLength": 9}},
            {"keys": "own/", "read": ["owner"], "write": ["owner"], "create": ["*"]},
            {"keys": "hid/", "read": ["1"], "watch": ["1"]},
            {"keys": "once/", "writeOnce": true},
            {"keys": "fix", "readonly": true, "default": 5},
            {"keys": "mem/", "backing": "memory", "limits": {"keys": 3}},
            {"keys": "short/", "expire": "5ms", "durability": "memory"},
            {"keys": "few/", "limits": {"bytes": 200, "writesPerSecond": 9, "watches": 2}, "softLimits": {"keys": 1}},
            {"keys": "/", "admin": ["*"], "limits": {"valueBytes": 900}}
        ]}
        """

    /// Where all the servers listen, one after the other, and where their values are.
    private struct Stage {
        let place: TemporaryDirectory
        let listener: ListeningSocket

        init() throws {
            place = try TemporaryDirectory(in: "/dev/shm")
            listener = try ListeningSocket(path: place.path(of: "s"), mode: 0o600)
        }
    }

    /// Used by the thread of the inputs alone.
    nonisolated(unsafe) private static let stage = Result { try Stage() }

    static func run(_ bytes: Bytes) throws {
        guard bytes.count > 2 else { return }
        let stage = try stage.get()
        let listener = stage.listener
        let served = try FuzzedServer(
            stored: bytes[0] & 1 != 0 ? stage.place.path(of: "data") : nil,
            rules: bytes[0] & 2 != 0 ? try table() : nil,
            replyByteCount: bytes[0] & 4 != 0 ? 4 << 10 : 1 << 20,
            listener: listener
        )
        var peers = try (0..<4).map { _ in try Peer(listener.path) }
        var current = 0
        var sent: [UInt8] = []
        func send() throws {
            defer { sent = [] }
            try sent.withUnsafeBytes { sent in
                try cut(sent, seed: bytes[1]) { piece in
                    // A connection that the server has ended takes nothing more.
                    _ = try? peers[current].socket.sendAtOnce(Array(piece)[...])
                    if bytes[1] & 1 != 0 { try served.catchUp() }
                }
            }
        }
        var index = 2
        while index < bytes.count {
            switch bytes[index] {
            case 0xFE where index + 1 < bytes.count:
                try send()
                index += 1
                current = Int(bytes[index]) & 3
            case 0xFF:
                try send()
                try served.catchUp()
                // Some read, some do not.
                if current < 2 { _ = try? peers[current].arrived() }
            default: sent.append(bytes[index])
            }
            index += 1
        }
        try send()
        try served.catchUp()
        peers = []
        let faults = try served.end()
        require(faults.isEmpty, "\(faults)")
    }

    private static func table() throws -> KeyRules {
        let accounts = AccountDirectory(user: { UInt32($0) }, group: { UInt32($0) })
        let value = try JSONValue(parsing: Array(rules.utf8))
        return try Configuration(value, accounts: accounts).rules.byKey
    }
}

/// A server on a thread of its own, for one input.
private final class FuzzedServer {
    private let keyspace: LocalKeyspace
    private let directory: String?
    private let thread = WorkerThread(name: "served")
    private var signals: [Int32] = [-1, -1]
    private let probe: Peer

    init(
        stored: String?,
        rules: KeyRules?,
        replyByteCount: Int,
        listener: ListeningSocket
    ) throws {
        directory = stored
        let backing: any Backing = stored.map { SQLiteBacking(directory: $0) } ?? MemoryBacking()
        var options = ServerOptions(version: "0.0.0")
        options.limits.valueByteCount = 4 << 10
        options.limits.transactionByteCount = 16 << 10
        options.limits.queueByteCount = 64 << 10
        options.outputByteCount = 16 << 10
        options.inputByteCount = 64 << 10
        options.replyByteCount = replyByteCount
        options.watchCount = 20
        options.scanCount = 4
        if rules != nil { options.privilegedUsers = [] }
        keyspace = try LocalKeyspace(backing: backing, limits: options.limits)
        if let rules { try keyspace.install(rules: rules) }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &signals) == 0 else {
            throw SystemFailure(call: "socketpair", errno)
        }
        let (descriptor, reader) = (listener.descriptor, signals[0])
        thread.start { [keyspace, options] in
            let server = Server(keyspace: keyspace, options: options)
            server.listen(on: descriptor)
            _ = server.run(signals: reader, onReady: {}, onStopping: {})
        }
        probe = try Peer(listener.path)
    }

    /// Waits until what was sent before has been read and carried out.
    func catchUp() throws {
        for _ in 0..<2 {
            let reply = try probe.ask("PING")
            require(reply == .simple("PONG"), reply.shown)
        }
    }

    /// Stops the server, and says what is wrong with the keyspace.
    func end() throws -> [String] {
        var info = [UInt8](repeating: 0, count: 128)
        info[0] = UInt8(SIGTERM)
        _ = write(signals[1], info, info.count)
        thread.join()
        // First, for it settles what was committed last.
        keyspace.close()
        let faults = keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) }
        for signal in signals { close(signal) }
        if let directory { cfuzzer_remove(directory) }
        return faults
    }
}
