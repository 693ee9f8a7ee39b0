import StateEngine
import StateWire

/// Messages that are delivered in order and in slices: those of one command on their way to all
/// users, or those of all senders on their way to one user.
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
        /// Subscriptions with a smaller number receive it.
        let number: Int
        /// The channels that it matches; nil if they are not known yet.
        let channels: [Channel]?
    }

    /// What is left of the delivery of the next message to a user.
    struct Delivery {
        /// The channels that are left, the next one last.
        var channels: [Channel]
        /// Whether these must be compared with the name.
        let mustCompare: Bool
        /// The subscriptions that are left of the channel before.
        var subscriptions: [Subscription] = []
    }

    /// The user whose memory it is, and who is charged for the delivery.
    let account: ClientMemory.Account
    /// Whose command sent them; nil for messages on their way to one user.
    ///
    /// Its next command waits until they are sent.
    let publisher: Connection?
    private var bytes = ByteBuffer()
    private var messages: [Message] = []
    private var next = 0
    var delivery: Delivery?
    /// The sum of what is known of the messages.
    private var channelCount = 0

    /// Until when the delivery rests if others are served, on the monotonic clock in nanoseconds.
    var restEnd: Int64 = 0
    /// Whether its delivery goes on in slices.
    var isInSlices = false
    /// What ``ClientMemory`` has counted of it.
    var countedByteCount = 0

    init(for account: ClientMemory.Account, of publisher: Connection? = nil) {
        (self.account, self.publisher) = (account, publisher)
    }

    var isEmpty: Bool { next == messages.count }

    /// The approximate memory of what waits.
    var byteCount: Int {
        guard !isEmpty else { return 0 }
        var left = delivery.map { $0.channels.capacity + $0.subscriptions.capacity } ?? 0
        left += channelCount
        return bytes.footprint + messages.capacity * MemoryLayout<Message>.stride
            + left * MemoryLayout<UnsafeRawPointer>.stride
    }

    func append(
        _ payload: Bytes,
        to name: Bytes,
        isSharded: Bool,
        for audience: Audience?,
        number: Int,
        knowing channels: [Channel]? = nil
    ) {
        channelCount += channels?.count ?? 0
        bytes.append(name)
        bytes.append(payload)
        messages.append(
            Message(
                nameByteCount: name.count,
                payloadByteCount: payload.count,
                isSharded: isSharded,
                audience: audience,
                number: number,
                channels: channels
            )
        )
    }

    /// Drops what is not delivered.
    func removeAll() {
        bytes.removeAll()
        bytes.shrink(to: 0)
        (messages, next, delivery, channelCount) = ([], 0, nil, 0)
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

    /// The next message is delivered.
    func endMessage() {
        channelCount -= messages[next].channels?.count ?? 0
        bytes.removeFirst(messages[next].nameByteCount + messages[next].payloadByteCount)
        (next, delivery) = (next + 1, nil)
        guard isEmpty || next >= 1_024 && next > messages.count / 2 else { return }
        messages.removeFirst(next)
        next = 0
        guard messages.isEmpty else { return }
        bytes.shrink(to: 64 << 10)
        if messages.capacity > 1_024 { messages = [] }
    }
}
