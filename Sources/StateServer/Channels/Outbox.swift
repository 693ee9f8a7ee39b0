import StateEngine
import StateWire

/// Messages that are delivered in order and in slices: those of one command, or the keyspace
/// notifications of one user.
///
/// Used only by the loop thread.
final class Outbox {
    /// One message; its name and its payload are in ``bytes``.
    struct Message {
        let nameByteCount: Int
        let payloadByteCount: Int
        let isSharded: Bool
        /// Who may receive it; nil: everybody.
        let audience: Audience?
        /// The subscribers when it was sent, of whom those receive it who still are; nil: those who
        /// are when it is delivered.
        let receivers: [Receivers]?
    }

    typealias Receivers = (channel: Channel, subscribers: Channel.Subscribers)

    /// The user who is charged for the delivery.
    let account: ClientMemory.Account
    /// The only user whose connections receive the messages; nil: all users.
    let user: UInt32?
    /// Whose command sent them: its next one waits until they are delivered.
    let publisher: Connection?
    private var bytes = ByteBuffer()
    private var messages: [Message] = []
    private var next = 0
    /// The connections that are left for the next message.
    private var connections: [(channel: Channel, connection: Connection)]?

    /// Until when the delivery rests if others are served, on the monotonic clock in nanoseconds.
    var restEnd: Int64 = 0
    /// Whether its delivery goes on in slices.
    var isInSlices = false
    /// How many steps of looking for subscribers its command has left before its reply.
    var searchStepsLeft = 1 << 19

    /// The messages of a command.
    init(of publisher: Connection, _ account: ClientMemory.Account) {
        (self.publisher, self.account, user) = (publisher, account, nil)
    }

    /// Messages for the connections of one user.
    init(for account: ClientMemory.Account) {
        (publisher, self.account, user) = (nil, account, account.uid)
    }

    var isEmpty: Bool { next == messages.count }

    /// Its approximate memory.
    var byteCount: Int {
        bytes.footprint + messages.capacity * MemoryLayout<Message>.stride
    }

    func append(
        _ payload: Bytes,
        to name: Bytes,
        isSharded: Bool = false,
        for audience: Audience?,
        _ receivers: [Receivers]?
    ) {
        bytes.append(name)
        bytes.append(payload)
        messages.append(
            Message(
                nameByteCount: name.count,
                payloadByteCount: payload.count,
                isSharded: isSharded,
                audience: audience,
                receivers: receivers
            )
        )
    }

    /// Drops what is not delivered.
    func removeAll() {
        bytes.removeAll()
        bytes.shrink(to: 0)
        (messages, next, connections) = ([], 0, nil)
    }

    /// The next message with its name and its payload, which are valid until it ends or another one
    /// is added; nil if there is none.
    var nextMessage: (message: Message, name: Bytes, payload: Bytes)? {
        guard next < messages.count else { return nil }
        let message = messages[next]
        let end = message.nameByteCount + message.payloadByteCount
        return (
            message, bytes.bytes.slice(0, message.nameByteCount),
            bytes.bytes.slice(message.nameByteCount, end)
        )
    }

    /// Whether the connections that receive the next message are known.
    var hasConnections: Bool { connections != nil }

    /// Sets them.
    func begin(_ receivers: [Receivers]) {
        connections = receivers.reversed().flatMap { receivers in
            receivers.subscribers.values.flatMap { connections in
                connections.values.map { (channel: receivers.channel, connection: $0) }
            }
        }
    }

    /// The next connection that receives the next message; nil if there are no more.
    func takeConnection() -> (channel: Channel, connection: Connection)? {
        connections?.popLast()
    }

    /// The next message is delivered.
    func endMessage() {
        bytes.removeFirst(messages[next].nameByteCount + messages[next].payloadByteCount)
        (next, connections) = (next + 1, nil)
        guard isEmpty || next >= 1_024 && next > messages.count / 2 else { return }
        messages.removeFirst(next)
        next = 0
        if messages.isEmpty { bytes.shrink(to: 64 << 10) }
    }
}
