import StateEngine
import StateTestSupport
import StateWire

/// A connection that sends commands in one write and takes the answers that come, be it only those before a crash.
///
/// One thread at a time.
final class Session {
    private let socket: ByteSocket
    private var parser = ReplyParser()

    /// Connects; in RESP3 where `usesRESP3`.
    init(_ path: String, usesRESP3: Bool = true) throws {
        socket = try ByteSocket(path: path)
        guard usesRESP3 else { return }
        _ = try ask("HELLO", "3")
    }

    /// Sends commands in one write.
    ///
    /// - Returns: Whether the connection still stood.
    func send(_ commands: [[[UInt8]]]) -> Bool {
        var writer = RequestWriter()
        for command in commands { writer.append(command) }
        return (try? socket.send(writer.bytes)) != nil
    }

    /// Waits for the next answer; nil where the connection ended before it.
    func next() throws -> Reply? {
        while true {
            if let reply = try parser.next() { return reply }
            guard let bytes = try socket.receive() else { return nil }
            bytes.withUnsafeBytes { parser.append($0) }
        }
    }

    /// The answers up to the end of the stream.
    func rest() throws -> [Reply] {
        var replies: [Reply] = []
        while let reply = try next() { replies.append(reply) }
        return replies
    }

    /// Sends one command and waits for its answer, without which nothing can go on.
    func ask(_ command: [[UInt8]]) throws -> Reply {
        guard send([command]), let reply = try next() else {
            throw SystemFailure("the connection was lost at '\(command.line)'")
        }
        return reply
    }

    /// The same for a command of words.
    func ask(_ words: String...) throws -> Reply { try ask(words.map { Array($0.utf8) }) }
}

extension [[UInt8]] {
    /// The command as a line.
    var line: String {
        map { $0.withUnsafeBytes(\.text) }.map { $0.isEmpty ? "\"\"" : $0 }.joined(separator: " ")
    }
}
