import Glibc
import StateTestSupport
import StateWire

/// A connection that costs little and waits for as long as the daemon takes.
final class Wire {
    let descriptor: Int32
    private(set) var received: [UInt8] = []
    private var room = [UInt8](repeating: 0, count: 256 << 10)
    private var parser = ReplyParser()

    init(_ path: String) throws { descriptor = try ByteSocket.connected(to: path) }

    /// Takes over a socket that is connected.
    init(connected descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                write(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent)
            }
            guard count >= 0 || errno == EINTR else { throw SystemFailure(call: "write", errno) }
            sent += max(0, count)
        }
    }

    /// Waits for bytes, and appends them to ``received``.
    func receive() throws {
        while true {
            let count = read(descriptor, &room, room.count)
            if count > 0 {
                received += room[0..<count]
                return
            }
            guard count < 0, errno == EINTR else { throw Failure("the daemon closed a connection") }
        }
    }

    func forgetReceived() { received.removeAll(keepingCapacity: true) }

    /// Whether bytes are there, or the stream has ended, within so many milliseconds.
    func waits(milliseconds: Int32) -> Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, milliseconds) > 0
    }

    /// Whether ``received`` is one whole bulk reply or null.
    var hasWholeValue: Bool {
        guard received.count >= 3, received[received.count - 1] == 10 else { return false }
        guard received[0] == UInt8(ascii: "$"), received[1] != UInt8(ascii: "-") else {
            return true
        }
        var (count, place) = (0, 1)
        while received[place] != 13 {
            count = count * 10 + Int(received[place] & 15)
            place += 1
        }
        return received.count >= place + 2 + count + 2
    }

    /// Whether the value in ``received`` is null.
    var isNull: Bool { received[0] == UInt8(ascii: "_") || received[1] == UInt8(ascii: "-") }

    // MARK: Whole replies

    /// The next reply or push; waits for it.
    func next() throws -> Reply {
        while true {
            if let reply = try parser.next() { return reply }
            try receive()
            received.withUnsafeBytes { parser.append($0) }
            forgetReceived()
        }
    }

    /// The next one if it has arrived.
    func arrived() throws -> Reply? {
        while true {
            if let reply = try parser.next() { return reply }
            guard waits(milliseconds: 0) else { return nil }
            try receive()
            received.withUnsafeBytes { parser.append($0) }
            forgetReceived()
        }
    }

    @discardableResult
    func ask(_ words: String...) throws -> Reply {
        try send(Wire.command(words))
        let reply = try next()
        if case .error(let error) = reply { throw Failure("\(words[0]): \(error)") }
        return reply
    }

    static func command(_ words: [String]) -> [UInt8] {
        var text = "*\(words.count)\r\n"
        for word in words { text += "$\(word.utf8.count)\r\n\(word)\r\n" }
        return Array(text.utf8)
    }

    /// Sends many commands of one reply each, in pieces, and waits for all; none may fail.
    func pipeline(_ count: Int, _ command: (Int) -> [UInt8]) throws {
        var sent = 0
        while sent < count {
            let piece = min(500, count - sent)
            try send((sent..<sent + piece).flatMap(command))
            for _ in 0..<piece {
                if case .error(let error) = try next() { throw Failure("\(error)") }
            }
            sent += piece
        }
    }
}
