import Glibc
import StateWire

/// One connection with its output and input buffers.
final class Connection {
    let descriptor: Int32
    var output = ByteQueue(capacity: 4096)
    private var input = ByteQueue(capacity: 16384)
    private var waitsForRoom = false
    /// For an abuser: whether nothing was sent yet.
    var isFresh = true

    /// The result of a read.
    enum Arrival {
        case bytes
        case nothing
        /// The server closed the connection; everything it had sent was read before.
        case cut
    }

    private static let streamType = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)

    init(socket path: String) throws(BenchError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard path.utf8.count < room else { throw .usage("the path '\(path)' is too long") }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        descriptor = try Connection.open(AF_UNIX, address, "'\(path)'")
    }

    /// Connects to a TCP port of this machine; writes are sent at once.
    init(port: Int) throws(BenchError) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        descriptor = try Connection.open(AF_INET, address, "to port \(port)")
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    }

    /// A descriptor connected to `address`, which errors call `name`.
    private static func open<Address>(
        _ family: Int32,
        _ address: Address,
        _ name: String
    ) throws(BenchError) -> Int32 {
        let descriptor = Glibc.socket(family, streamType, 0)
        guard descriptor >= 0 else { throw .system("socket") }
        let result = withUnsafeBytes(of: address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                connect(descriptor, $0.baseAddress, socklen_t(bytes.count))
            }
        }
        guard result == 0 else {
            let error = BenchError.system("connect \(name)")
            close(descriptor)
            throw error
        }
        return descriptor
    }

    deinit { close(descriptor) }

    /// Makes reads and writes return instead of waiting.
    func becomeNonBlocking() throws(BenchError) {
        guard fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { throw .system("fcntl") }
    }

    /// Sends as much as possible of ``output``.
    ///
    /// - Returns: Whether the server still accepts bytes.
    func flush() throws(BenchError) -> Bool {
        while !output.isEmpty {
            let sent = write(descriptor, output.bytes.baseAddress, output.bytes.count)
            if sent >= 0 {
                output.consume(sent)
            } else if errno == EAGAIN {
                return true
            } else if errno == EPIPE || errno == ECONNRESET {
                return false
            } else if errno != EINTR {
                throw .system("write")
            }
        }
        return true
    }

    /// Sends as much as possible, and makes `poller` report when there is room for the rest.
    ///
    /// - Returns: Whether the server still accepts bytes.
    func flush(_ poller: Poller, number: Int) throws(BenchError) -> Bool {
        let isTaken = try flush()
        if isTaken, output.isEmpty == waitsForRoom {
            waitsForRoom.toggle()
            try poller.change(descriptor, number: number, writable: waitsForRoom)
        }
        return isTaken
    }

    /// Reads once.
    func receive() throws(BenchError) -> Arrival {
        while true {
            let room = input.reserve(16384)
            let count = read(descriptor, room.baseAddress, room.count)
            if count > 0 {
                input.commit(count)
                return .bytes
            }
            if count == 0 || errno == ECONNRESET { return .cut }
            if errno == EAGAIN { return .nothing }
            if errno != EINTR { throw .system("read") }
        }
    }

    /// The received bytes that were not consumed yet; valid until the next change.
    var receivedBytes: UnsafeRawBufferPointer { input.bytes }

    func consumeReceived(_ count: Int) { input.consume(count) }

    /// Passes the bytes of each complete reply to `body`, in order.
    func takeReplies(
        _ body: (UnsafeRawBufferPointer) throws(BenchError) -> Void
    ) throws(BenchError) {
        while !input.isEmpty, let count = try ReplyScanner.length(of: input.bytes) {
            try body(UnsafeRawBufferPointer(rebasing: input.bytes[..<count]))
            input.consume(count)
        }
    }

    /// Sends a command and waits for its reply, on a blocking connection.
    func call(_ words: String...) throws(BenchError) -> Reply { try call(words) }

    func call(_ words: [String]) throws(BenchError) -> Reply {
        output.append(command: words)
        guard try flush() else { throw .failed("the connection was closed") }
        var answer: Reply?
        while true {
            try takeReplies { (bytes) throws(BenchError) in answer = try Reply(whole: bytes) }
            if let answer { return answer }
            guard case .bytes = try receive() else { throw .failed("the connection was closed") }
        }
    }

    /// The same; an error reply is thrown.
    @discardableResult
    func ask(_ words: String...) throws(BenchError) -> Reply {
        let reply = try call(words)
        if case .error(let text) = reply { throw .failed("\(words[0]): \(text)") }
        return reply
    }
}

extension Reply {
    /// Parses exactly one reply, as ``ReplyScanner`` measured it.
    init(whole bytes: UnsafeRawBufferPointer) throws(BenchError) {
        var parser = ReplyParser()
        parser.append(bytes)
        guard let reply = try? parser.next() else {
            throw .failed("invalid reply '\(String(decoding: bytes.prefix(80), as: UTF8.self))'")
        }
        self = reply
    }
}

extension ByteQueue {
    /// Appends a command as an array of bulks.
    mutating func append(command words: [String]) {
        append("*\(words.count)\r\n")
        for word in words { append(bulk: word) }
    }

    mutating func append(bulk word: String) {
        append("$\(word.utf8.count)\r\n")
        append(word)
        append("\r\n")
    }

    mutating func append(bulk bytes: [UInt8]) {
        append("$\(bytes.count)\r\n")
        bytes.withUnsafeBytes { append($0) }
        append("\r\n")
    }
}
