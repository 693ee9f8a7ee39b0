import Glibc
import StateClient

/// A connected Unix socket that sends exactly what a test says, well-formed or not.
///
/// One thread at a time. Everything that waits has a deadline of 20 seconds, and says what it waited for.
package final class ByteSocket {
    /// Takes every byte that arrives, before anything else does.
    package var onArrival: ([UInt8]) -> Void = { _ in }
    private var descriptor: Int32
    /// What arrived while bytes were sent.
    private var arrivedBefore: [UInt8] = []
    /// The peer's side had ended by then.
    private var hasArrivedAll = false

    /// Connects.
    package init(path: String) throws {
        descriptor = try ByteSocket.connected(to: path)
    }

    /// A stream socket that is connected, of which the caller disposes.
    package static func connected(to path: String) throws -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw SystemFailure(call: "socket", errno) }
        guard withUnixAddress(of: path, { connect(descriptor, $0, $1) }) == 0 else {
            defer { close(descriptor) }
            throw SystemFailure(call: "connect to \(path)", errno)
        }
        return descriptor
    }

    /// Takes over a socket that is connected.
    init(connected descriptor: Int32) { self.descriptor = descriptor }

    deinit { end() }

    /// Closes the socket, as a process that ends does.
    package func end() {
        guard descriptor >= 0 else { return }
        // A process that another test starts at this moment has the socket open, too, until it is another program.
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
        descriptor = -1
    }

    /// Says that nothing more will be sent.
    package func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Raises this process's limit of open files, as far as it may be raised, to so many.
    package static func allow(_ count: Int) {
        let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        getrlimit(openFiles, &limit)
        limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, rlim_t(count)))
        setrlimit(openFiles, &limit)
    }

    // MARK: Sending

    /// Sends all bytes, and keeps what arrives meanwhile: a server whose replies nobody takes stops reading.
    package func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while true {
            sent += try sendAtOnce(bytes[sent...])
            guard sent < bytes.count else { return }
            let room = hasArrivedAll ? POLLOUT : POLLIN | POLLOUT
            try wait(room, for: "room for \(bytes.count - sent) bytes")
            // From the socket itself: as long as something is there, waiting for room is no waiting.
            if !hasArrivedAll, let more = try takeFromSocket() {
                arrivedBefore += more
                hasArrivedAll = more.isEmpty
            }
        }
    }

    /// Sends all bytes of a text.
    package func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// Sends as much as the socket takes now.
    ///
    /// - Returns: How many bytes.
    @discardableResult
    package func sendAtOnce(_ bytes: ArraySlice<UInt8>) throws -> Int {
        let flags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
        let count = bytes.withUnsafeBytes {
            Glibc.send(descriptor, $0.baseAddress, $0.count, flags)
        }
        if count >= 0 { return count }
        guard errno == EAGAIN else { throw SystemFailure(call: "send", errno) }
        return 0
    }

    // MARK: Receiving

    /// Waits for bytes.
    ///
    /// - Returns: What came; nil at the end of the stream.
    package func receive() throws -> [UInt8]? {
        while true {
            if let bytes = try receiveAtOnce() { return bytes.isEmpty ? nil : bytes }
            try wait(POLLIN, for: "bytes")
        }
    }

    /// What has arrived by now; nil where nothing has, empty at the end of the stream.
    package func receiveAtOnce() throws -> [UInt8]? {
        if !arrivedBefore.isEmpty {
            defer { arrivedBefore = [] }
            return arrivedBefore
        }
        return try takeFromSocket()
    }

    private func takeFromSocket() throws -> [UInt8]? {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 256 << 10) { room, count in
            let received = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
            failure = received < 0 ? errno : 0
            count = max(0, received)
        }
        switch failure {
        // A peer that closes with bytes unread resets the connection: an end like any other.
        case 0, ECONNRESET:
            onArrival(bytes)
            return bytes
        case EAGAIN: return nil
        default: throw SystemFailure(call: "recv", failure)
        }
    }

    /// Receives until the stream ends.
    package func receiveAll() throws -> [UInt8] {
        var all: [UInt8] = []
        while let bytes = try receive() { all += bytes }
        return all
    }

    /// Waits for bytes or the end of the stream, for so long at most.
    ///
    /// - Returns: Whether there is something to receive.
    package func isReadable(within milliseconds: Int32) -> Bool {
        if !arrivedBefore.isEmpty { return true }
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, milliseconds) > 0
    }

    private func wait(_ events: Int32, for what: String) throws {
        var waiting = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        let deadline = Deadline(after: .seconds(20))
        while poll(&waiting, 1, deadline.millisecondsLeft) <= 0 {
            guard !deadline.hasPassed else { throw SystemFailure("no \(what) within 20 s") }
        }
    }
}
