import StateEngine
import StateTestSupport
import StateWire

/// One connection of a user of whom every byte that arrives is kept.
final class AccessConnection {
    private(set) var received: [UInt8] = []
    private let socket: ByteSocket
    private let version: Int
    private var markCount = 0

    init(_ user: TestUser?, _ daemon: Daemon, version: Int) throws {
        socket = try user?.connect(to: daemon.socketPath) ?? ByteSocket(path: daemon.socketPath)
        self.version = version
        socket.onArrival = { [unowned self] in received += $0 }
        if version == 3 { try exchange([["HELLO", "3"]]) }
    }

    /// Sends commands and waits until all of them are answered, and what was pushed before that has come.
    ///
    /// - Returns: What came.
    @discardableResult
    func exchange(_ commands: [[String]]) throws -> String {
        let start = received.count
        markCount += 1
        // Under RESP2 a connection that subscribes has few other commands.
        let mark = "mark-\(markCount)-"
        var writer = RequestWriter()
        for command in commands + [["PING", mark]] { writer.append(command.map { Array($0.utf8) }) }
        try socket.send(writer.bytes)
        try wait(for: "\(mark)\r\n", from: start)
        return String(decoding: received[start...], as: UTF8.self)
    }

    /// Waits until these bytes have arrived, at `start` or later.
    func wait(for text: String, from start: Int = 0) throws {
        let wanted = Array(text.utf8)
        var next = start
        while true {
            while next + wanted.count <= received.count {
                if received[next] == wanted[0], received[next...].starts(with: wanted) { return }
                next += 1
            }
            guard try socket.receive() != nil else { throw SystemFailure("the stream ended") }
        }
    }
}

/// The tokens in a stream: what stands behind each `tok:`, whatever the stream was cut into.
func tokens(in bytes: [UInt8]) -> Set<String> {
    let mark = Array("tok:".utf8)
    var found: Set<String> = []
    var index = 0
    while index + mark.count < bytes.count {
        guard bytes[index] == mark[0], bytes[index...].starts(with: mark) else {
            index += 1
            continue
        }
        let rest = bytes[(index + mark.count)...].prefix { $0 >= 0x30 && $0 <= 0x39 }
        found.insert(String(decoding: rest, as: UTF8.self))
        index += mark.count
    }
    return found
}

/// A user with his connections.
final class AccessActor {
    let user: TestUser?
    let uid: UInt32
    let groups: Set<UInt32>
    var connections: [AccessConnection] = []
    /// Connections that only hear: watches and subscriptions.
    var hearers: [AccessConnection] = []

    /// Connects, for root where `user` is nil.
    init(_ user: TestUser?, _ daemon: Daemon) throws {
        self.user = user
        uid = user?.uid ?? 0
        groups = Set(user?.groups ?? [])
        for version in [2, 3] {
            connections.append(try AccessConnection(user, daemon, version: version))
        }
        let watches = [
            "/ SNAPSHOT PREVIOUS BY", "/ LATEST", "* team/* FROM 1 PREVIOUS",
        ]
        for watch in watches {
            let connection = try AccessConnection(user, daemon, version: 3)
            let words = watch.split(separator: " ").map(String.init)
            try connection.exchange([["STATE.WATCH"] + words])
            hearers.append(connection)
        }
        for version in [2, 3] {
            let connection = try AccessConnection(user, daemon, version: version)
            try connection.exchange([
                ["PSUBSCRIBE", "*", "__key*__:*"], ["SUBSCRIBE", "free/channel"],
            ])
            hearers.append(connection)
        }
    }

    /// Has further connections told of everything that was.
    func lookBack(_ daemon: Daemon) throws {
        for options in ["PREVIOUS BY", "LATEST"] {
            let connection = try AccessConnection(user, daemon, version: 3)
            let words = "STATE.WATCH / FROM 1 \(options)".split(separator: " ").map(String.init)
            try connection.exchange([words])
            hearers.append(connection)
        }
    }

    /// Waits until all that hear have heard of the last commit of all.
    func hear(_ last: String) throws {
        for connection in hearers { try connection.wait(for: last) }
    }

    /// Every byte that any of his connections ever received.
    var received: [UInt8] { (connections + hearers).flatMap(\.received) }
}
