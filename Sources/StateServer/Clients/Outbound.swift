import Glibc
import StateWire

/// What waits to be sent to a client: what may go, and replies that wait for storage.
struct Outbound: ~Copyable {
    /// What may go.
    var bytes = ByteBuffer()
    var held = HeldReplies()
    /// A held reply, of EXEC, tells of subscriptions: no message passes it.
    var isConfirmationHeld = false
    /// The last flush ended though the socket may take more.
    private(set) var hasMoreToSend = false
    /// Bytes of messages to channels that may wait among them, at most.
    var messageByteCount = 0
    /// Bytes that were sent, and how many there were when it was last looked at whether the client reads.
    private(set) var sentByteCount = 0
    var seenSentByteCount = 0

    /// As many bytes are sent at once.
    private static let flushByteCount = 256 << 10

    /// Bytes that wait for the client.
    var waitingByteCount: Int { bytes.count + held.byteCount }

    /// Sends what may go, ``flushByteCount`` at most.
    ///
    /// - Returns: Whether the connection still stands.
    mutating func flush(to descriptor: Int32) -> Bool {
        var left = Outbound.flushByteCount
        hasMoreToSend = false
        while !bytes.isEmpty {
            guard left > 0 else {
                hasMoreToSend = true
                return true
            }
            let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
            let waiting = bytes.bytes
            let count = send(descriptor, waiting.baseAddress, min(waiting.count, left), flags)
            if count >= 0 {
                bytes.removeFirst(count)
                left -= count
                sentByteCount &+= count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: return true
            case EBADF, EFAULT: preconditionFailure("send to descriptor \(descriptor)")
            default: return false
            }
        }
        bytes.shrink(to: 64 << 10)
        return true
    }
}

/// The connections that have something to send, each once.
final class FlushList {
    /// What watchers were last told since the list was drained.
    let encodedCommit = EncodedCommit()
    private var connections: [Connection] = []

    var isEmpty: Bool { connections.isEmpty }

    func add(_ connection: Connection) {
        guard !connection.places.isFlushed else { return }
        connection.places.isFlushed = true
        connections.append(connection)
    }

    /// Calls `body` for each connection and forgets them.
    func drain(_ body: (Connection) -> Void) {
        var index = 0
        while index < connections.count {
            let connection = connections[index]
            connection.places.isFlushed = false
            if !connection.isClosed { body(connection) }
            index += 1
        }
        connections.removeAll(keepingCapacity: true)
    }
}
