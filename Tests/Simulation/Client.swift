import Glibc
import StateLinearizability
import StateTestSupport

/// A simulated client: it sends commands when it is its turn, whole or in parts, reads what has come, and is cut off now and then.
struct Client {
    let number: Int
    private var socket: Int32 = -1
    private var unsent: [UInt8] = []
    private var received: [UInt8] = []
    private var pending: [(key: String, request: Operation.Request, time: Int64)] = []

    init(_ number: Int) { self.number = number }

    var isConnected: Bool { socket >= 0 }
    var isIdle: Bool { pending.isEmpty && unsent.isEmpty }
    var pendingCount: Int { pending.count }

    mutating func connect(to path: String) {
        let file = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { target in
            for (index, byte) in path.utf8.enumerated() { target[index] = byte }
        }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(file, $0, size) }
        }
        guard result == 0 else {
            close(file)
            return
        }
        _ = fcntl(file, F_SETFL, O_NONBLOCK)
        socket = file
    }

    /// Ends the connection; what is not answered may have happened until now, or later if the daemon lives.
    mutating func cut(at time: Int64, isDaemonAlive: Bool) -> [Operation] {
        if socket >= 0 { close(socket) }
        (socket, unsent, received) = (-1, [], [])
        defer { pending = [] }
        return pending.map {
            Operation(
                client: number,
                key: $0.key,
                $0.request,
                .unknown,
                invoked: $0.time,
                ended: isDaemonAlive ? .max : time
            )
        }
    }

    mutating func ask(_ request: Operation.Request, of key: String, at time: Int64) {
        let words: [String] =
            switch request {
            case .get: ["GET", key]
            case .set(let value): ["SET", key, value]
            case .delete: ["DEL", key]
            case .add(let number): ["INCRBY", key, "\(number)"]
            case .getEntry, .setEntry: []
            }
        var text = "*\(words.count)\r\n"
        for word in words { text += "$\(word.utf8.count)\r\n\(word)\r\n" }
        unsent += Array(text.utf8)
        pending.append((key, request, time))
    }

    /// Sends at most so many bytes.
    mutating func send(upTo count: Int) {
        let part = unsent.prefix(count)
        guard !part.isEmpty else { return }
        let sent = Array(part).withUnsafeBytes { write(socket, $0.baseAddress, $0.count) }
        if sent > 0 { unsent.removeFirst(sent) }
    }

    /// Reads what has come.
    ///
    /// - Returns: What was answered; nil if the connection has ended.
    mutating func receive(at time: Int64) -> [Operation]? {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(socket, $0.baseAddress, $0.count) }
            if count == 0 || count < 0 && errno != EAGAIN { return nil }
            guard count > 0 else { break }
            received += buffer[..<count]
        }
        var operations: [Operation] = []
        while !pending.isEmpty, let line = nextReply() {
            let (key, request, invoked) = pending.removeFirst()
            operations.append(
                Operation(
                    client: number,
                    key: key,
                    request,
                    Client.outcome(of: request, line),
                    invoked: invoked,
                    ended: time
                )
            )
        }
        return operations
    }

    /// Takes a reply off what was received: its first byte and its text; nil if there is none yet.
    private mutating func nextReply() -> (kind: Character, text: String?)? {
        guard let end = received.firstIndex(of: UInt8(ascii: "\n")), end >= 2 else { return nil }
        let kind = Character(Unicode.Scalar(received[0]))
        let line = String(decoding: received[1..<(end - 1)], as: UTF8.self)
        guard kind == "$", let count = Int(line), count >= 0 else {
            received.removeFirst(end + 1)
            return (kind, kind == "$" || kind == "_" ? nil : line)
        }
        guard received.count >= end + 1 + count + 2 else { return nil }
        let text = String(decoding: received[(end + 1)..<(end + 1 + count)], as: UTF8.self)
        received.removeFirst(end + 1 + count + 2)
        return (kind, text)
    }

    private static func outcome(
        of request: Operation.Request,
        _ reply: (kind: Character, text: String?)
    ) -> Operation.Outcome {
        if reply.kind == "-" {
            let text = reply.text ?? ""
            if text.contains("not an integer") { return .notANumber }
            return text.contains("outcome unknown") ? .unknown : .refused(text)
        }
        return switch request {
        case .get: .value(reply.text)
        case .set: .done
        case .delete: .deleted(reply.text == "1")
        case .add: .sum(reply.text.flatMap { Int64($0) } ?? .min)
        case .getEntry, .setEntry: .refused("")
        }
    }
}
