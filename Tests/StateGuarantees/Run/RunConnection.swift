import StateEngine
import StateTestSupport
import StateWire

/// A connection of a run, whose end is a value.
///
/// One thread at a time.
final class RunConnection {
    enum Arrival {
        case reply(Reply)
        case nothing
        case ended
    }

    private let socket: ByteSocket
    private var parser = ReplyParser()

    /// Connects, in RESP3 where `usesRESP3`; nil where nobody answers, or no more.
    init?(_ path: String, usesRESP3: Bool = true) throws {
        guard let socket = try? ByteSocket(path: path) else { return nil }
        self.socket = socket
        guard usesRESP3 else { return }
        guard let reply = try ask(["HELLO", "3"].bytes) else { return nil }
        if case .error(let error) = reply { throw SystemFailure("HELLO 3: \(error)") }
    }

    /// Sends commands in one write.
    ///
    /// - Returns: Whether the connection still stood.
    func send(_ commands: [[[UInt8]]]) -> Bool {
        var writer = RequestWriter()
        for command in commands { writer.append(command) }
        return (try? socket.send(writer.bytes)) != nil
    }

    /// What comes next, if it comes in time.
    func next(within milliseconds: Int32) throws -> Arrival {
        while true {
            if let reply = try parser.next() { return .reply(reply) }
            guard socket.isReadable(within: milliseconds) else { return .nothing }
            guard let bytes = try socket.receiveAtOnce() else { continue }
            guard !bytes.isEmpty else { return .ended }
            bytes.withUnsafeBytes { parser.append($0) }
        }
    }

    /// Sends a command and waits for its answer; nil where the connection was lost before it.
    func ask(_ command: [[UInt8]]) throws -> Reply? {
        guard send([command]) else { return nil }
        switch try next(within: 60_000) {
        case .reply(let reply): return reply
        case .ended: return nil
        case .nothing: throw SystemFailure("no answer to '\(command.first?.text ?? "")' in 60 s")
        }
    }

    func end() { socket.end() }
}

extension [UInt8] {
    var text: String { String(decoding: self, as: UTF8.self) }
}
