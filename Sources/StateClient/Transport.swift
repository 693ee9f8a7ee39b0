import CLinux
import StateModel
import StatePlatform
import StateWire

/// How a connection ended; what that means for a request is decided elsewhere.
enum Loss: Error {
    /// The other side closed it.
    case closed
    /// A system call failed.
    case failed(call: String, errno: Int32)
    /// The deadline passed.
    case timedOut
    /// The received bytes are not RESP.
    case malformed(String)
    /// The other end of the descriptor that the caller watches has hung up.
    case abandoned
    /// The server refuses the connection.
    case refused(StateError)
    /// This side has closed it.
    case ended
}

extension Loss: CustomStringConvertible {
    var description: String {
        switch self {
        case .closed: "the daemon closed the connection"
        case .failed(let call, let number): "\(call): \(String(cString: strerror(number)))"
        case .timedOut: "no answer in time"
        case .malformed(let sentence): sentence
        case .abandoned: "the reader has hung up"
        case .refused(let error): "the daemon refuses the connection: \(error)"
        case .ended: "the keyspace is closed"
        }
    }
}

extension StateError {
    /// The error of a write that may have arrived, but was not answered.
    static func unknownOutcome(_ cause: String) -> StateError {
        StateError(
            .outcomeUnknown,
            "\(cause), after the request was sent: its outcome is unknown"
        )
    }
}

extension ReplyParser {
    /// The next complete reply or push.
    mutating func parsed() throws(Loss) -> Reply? {
        do throws(ReplyError) { return try next() } catch {
            throw .malformed(error.description)
        }
    }
}

extension RequestWriter {
    /// Makes a request of these arguments.
    init(_ arguments: [[UInt8]]) {
        self.init()
        append(arguments)
    }

    /// Appends a HELLO for RESP3, with the client's name if it has one.
    mutating func appendHello(_ name: String) {
        append((["HELLO", "3"] + (name.isEmpty ? [] : ["SETNAME", name])).map { Array($0.utf8) })
    }
}

/// A connected Unix socket, non-blocking per call: the fast path is one send and one recv.
struct Transport: ~Copyable {
    let descriptor: Int32

    /// Connects to `choice`, which becomes the socket that was tried last.
    ///
    /// - Throws: ``StateError/Code/unreachable``, naming the path.
    init(_ choice: inout SocketLocation.Choice, deadline: Deadline?) throws(StateError) {
        descriptor = clinux_local_socket()
        guard descriptor >= 0 else { throw Self.unreachable(choice.path, errno) }
        if let deadline { limitConnect(deadline) }
        let socket = descriptor
        let code = try SocketLocation.process.connect(to: &choice) { path in
            let address = sockaddr_un(name: Array(path.utf8))
            let status = address.withAddress { address, size in
                retrying { connect(socket, address, size) }
            }
            return status == 0 && clinux_end_connect(socket) == 0 ? 0 : errno
        }
        guard code == 0 else { throw Self.unreachable(choice.path, code) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// With a full backlog, connect waits as long as the send timeout (unix(7)).
    private func limitConnect(_ deadline: Deadline) {
        let milliseconds = max(1, Int(deadline.millisecondsLeft))
        var time = timeval(
            tv_sec: milliseconds / 1_000,
            tv_usec: suseconds_t(milliseconds % 1_000 * 1_000)
        )
        setsockopt(
            descriptor,
            SOL_SOCKET,
            SO_SNDTIMEO,
            &time,
            socklen_t(MemoryLayout<timeval>.size)
        )
    }

    private static func unreachable(_ path: String, _ code: Int32) -> StateError {
        let sentence =
            switch code {
            case EACCES, EPERM: "no permission to connect to \(path)"
            case EAGAIN: "no daemon answers at \(path): its queue is full"
            default:
                "no daemon answers at \(path) (\(String(cString: strerror(code)))): "
                    + "start stated, or name another socket"
            }
        return StateError(.unreachable, sentence)
    }

    /// Sends as much as the socket accepts at once.
    ///
    /// - Returns: The number of bytes; 0 if it accepts none now.
    func send(_ bytes: Bytes) throws(Loss) -> Int {
        let count = retrying {
            StatePlatform.send(
                descriptor,
                bytes.baseAddress,
                bytes.count,
                Int32(CLINUX_SEND_AT_ONCE)
            )
        }
        if count >= 0 { return count }
        switch errno {
        case EAGAIN: return 0
        case EPIPE, ECONNRESET: throw .closed
        default: throw .failed(call: "send", errno: errno)
        }
    }

    /// Receives what is available; with `mayWait`, waits for the first byte.
    ///
    /// - Returns: The number of bytes; nil if none is available now.
    func receive(_ room: UnsafeMutableRawBufferPointer, mayWait: Bool) throws(Loss) -> Int? {
        let flags = mayWait ? 0 : Int32(MSG_DONTWAIT)
        let count = retrying { recv(descriptor, room.baseAddress, room.count, flags) }
        if count > 0 { return count }
        guard count < 0 else { throw .closed }
        switch errno {
        case EAGAIN where mayWait:
            // Only where the socket itself does not wait (Darwin).
            try wait(toSend: false, until: nil, unless: nil)
            return try receive(room, mayWait: true)
        case EAGAIN: return nil
        case ECONNRESET: throw .closed
        default: throw .failed(call: "recv", errno: errno)
        }
    }

    /// Waits until bytes arrive or, with `toSend`, until some can be sent.
    ///
    /// Throws `timedOut`, or `abandoned` if that happens.
    func wait(
        toSend: Bool,
        until deadline: Deadline?,
        unless other: Interruption?
    ) throws(Loss) {
        while true {
            var waiting = (
                pollfd(
                    fd: descriptor,
                    events: Int16(toSend ? POLLIN | POLLOUT : POLLIN),
                    revents: 0
                ),
                other?.awaited ?? pollfd(fd: -1, events: 0, revents: 0)
            )
            let timeout = deadline?.millisecondsLeft ?? -1
            let count = withUnsafeMutableBytes(of: &waiting) {
                poll($0.baseAddress?.assumingMemoryBound(to: pollfd.self), 2, timeout)
            }
            if count < 0 {
                guard errno == EINTR else { throw .failed(call: "poll", errno: errno) }
            } else if waiting.0.revents != 0 {
                return
            } else if waiting.1.revents & Int16(POLLIN | POLLERR | POLLHUP) != 0 {
                if other?.hasHappened() ?? true { throw .abandoned }
            } else if count == 0, deadline?.hasPassed ?? false {
                throw .timedOut
            }
        }
    }
}

/// What ends a wait for the daemon.
package enum Interruption {
    /// The other end of a descriptor hangs up.
    case hangup(Int32)
    /// A process ends, of which there is a descriptor (pidfd_open(2)).
    case end(process: Int32)
    /// A descriptor is readable, and this then returns true.
    case condition(Int32, () -> Bool)

    fileprivate func hasHappened() -> Bool {
        guard case .condition(_, let isTrue) = self else { return true }
        return isTrue()
    }

    fileprivate var awaited: pollfd {
        switch self {
        case .hangup(let descriptor): pollfd(fd: descriptor, events: 0, revents: 0)
        case .end(let process): pollfd(fd: process, events: Int16(POLLIN), revents: 0)
        case .condition(let descriptor, _):
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        }
    }
}

/// Repeats a system call that a signal interrupts.
func retrying<Result: FixedWidthInteger>(_ call: () -> Result) -> Result {
    while true {
        let result = call()
        if result != -1 || errno != EINTR { return result }
    }
}
