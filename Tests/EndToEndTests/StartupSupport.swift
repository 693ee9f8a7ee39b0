import Glibc
import StateTestSupport
import Testing

/// The directory of the package.
let packageRoot = #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 }

/// A connection that speaks inline commands, and a socket of the test's own.
final class RawSocket {
    let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Connects, as soon as somebody listens.
    static func connected(to path: String) throws -> RawSocket {
        var socket: RawSocket?
        _ = try eventually(within: .seconds(30)) {
            socket = try connecting(to: path)
            return socket != nil
        }
        return try #require(socket, "nobody listens at \(path)")
    }

    /// A stream socket without a name, not yet connected.
    static func unbound() -> RawSocket {
        RawSocket(socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0))
    }

    /// Connects; nil where nobody listens.
    static func connecting(to path: String) throws -> RawSocket? {
        let socket = unbound()
        return socket.connect(to: path) ? socket : nil
    }

    /// Binds a stream socket, or a datagram one; a name that begins with `@` is abstract.
    static func bound(to path: String, isDatagram: Bool = false) throws -> RawSocket {
        let type = isDatagram ? SOCK_DGRAM : SOCK_STREAM
        let socket = RawSocket(Glibc.socket(AF_UNIX, Int32(type.rawValue) | O_CLOEXEC, 0))
        let status = withUnixAddress(of: path) { bind(socket.descriptor, $0, $1) }
        try #require(status == 0, "\(path) cannot be bound")
        return socket
    }

    /// Connects; false where nobody listens.
    func connect(to path: String) -> Bool {
        withUnixAddress(of: path) { Glibc.connect(descriptor, $0, $1) } == 0
    }

    /// Sends one line and waits for a reply that contains `text`.
    @discardableResult
    func ask(_ line: String, awaiting text: String) throws -> String {
        let bytes = line + "\r\n"
        try #require(Glibc.send(descriptor, bytes, bytes.utf8.count, 0x4000) == bytes.utf8.count)
        var reply = ""
        while !reply.contains(text) { reply += try receive() }
        return reply
    }

    /// The next bytes, or the next datagram.
    func receive() throws -> String {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        try #require(poll(&waiting, 1, 30_000) == 1, "nothing came within 30 s")
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        try #require(count > 0, "the connection was closed")
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}

/// What stands at `path`, a link not followed; nil where nothing does.
func fileStatus(_ path: String) -> stat? {
    var status = stat()
    return lstat(path, &status) == 0 ? status : nil
}

/// Makes or replaces a small file.
func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o644) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
    try #require(descriptor >= 0, "\(path) cannot be made")
    defer { close(descriptor) }
    try #require(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
}
