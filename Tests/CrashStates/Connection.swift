import Glibc

/// A client of the daemon, which knows how many bytes it was sent up to each answer.
final class Connection {
    private let descriptor: Int32
    private var reader = ValueReader()

    /// Connects, once somebody listens; gives up as soon as `isAlive` is false.
    init(path: String, while isAlive: () -> Bool) throws(Failure) {
        let deadline = Clock.now() + 20_000
        while true {
            if let descriptor = Connection.connected(to: path) {
                self.descriptor = descriptor
                break
            }
            guard isAlive() else { throw Failure("the daemon ended") }
            guard Clock.now() < deadline else { throw Failure("nobody listens at \(path)") }
            usleep(500)
        }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(
            descriptor,
            SOL_SOCKET,
            SO_RCVTIMEO,
            &limit,
            socklen_t(MemoryLayout<timeval>.size)
        )
        send(["HELLO", "3"])
        _ = try read()
    }

    deinit { close(descriptor) }

    private static func connected(to path: String) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if code == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    /// Sends a command and waits for nothing.
    func send(_ words: [String]) { send(words.map { Array($0.utf8) }) }

    func send(_ words: [[UInt8]]) {
        var bytes = Array("*\(words.count)\r\n".utf8)
        for word in words {
            bytes += Array("$\(word.count)\r\n".utf8)
            bytes += word
            bytes += [13, 10]
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // The next answer says what has happened.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// The next answer or push, and how many bytes the daemon has sent on this connection up to its
    /// end.
    func read() throws(Failure) -> (value: Value, end: Int) {
        while true {
            if let value = try reader.next() { return (value, reader.takenCount) }
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else {
                throw Failure(count == 0 ? "the daemon hung up" : "the daemon does not answer")
            }
            reader.append(buffer[..<count])
        }
    }

    /// How many bytes the daemon has sent up to the end of the last answer.
    var end: Int { reader.takenCount }

    func ask(_ words: String...) throws(Failure) -> Value {
        send(words)
        return try read().value
    }
}

enum Clock {
    /// Milliseconds since some time.
    static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
    }
}
