import Glibc
import StateWire

/// A client's output: bytes that may be sent, and replies that wait for storage.
struct Outbound: ~Copyable {
    /// Bytes that may be sent.
    var bytes = ByteBuffer()
    var held = HeldReplies()
    /// A held reply of EXEC confirms subscriptions: no message may overtake it.
    var isConfirmationHeld = false
    /// The last flush ended although the socket may accept more.
    private(set) var hasMoreToSend = false
    /// The upper bound of bytes of channel messages among them.
    var messageByteCount = 0
    /// Bytes that were sent, and their number at the last check of whether the client reads.
    private(set) var sentByteCount = 0
    var seenSentByteCount = 0

    /// How many bytes one flush sends at most.
    private static let flushByteCount = 256 << 10

    /// Bytes that wait for the client.
    var waitingByteCount: Int { bytes.count + held.byteCount }

    /// Sends at most ``flushByteCount`` bytes.
    ///
    /// - Returns: Whether the connection is still open.
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

/// The connections with output to send, each once.
final class FlushList {
    /// The last commit that was encoded for watchers since the list was drained.
    let encodedCommit = EncodedCommit()
    private var connections: [Connection] = []

    var isEmpty: Bool { connections.isEmpty }

    func add(_ connection: Connection) {
        guard !connection.places.isFlushed else { return }
        connection.places.isFlushed = true
        connections.append(connection)
    }

    /// Calls `body` for each connection and empties the list.
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
