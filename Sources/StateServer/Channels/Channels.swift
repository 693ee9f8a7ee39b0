import StateEngine
import StateWire

/// The subscriptions, and the delivery of messages, which are not stored.
///
/// Used only by the loop thread. Subscriptions change under the keyspace's lock, because
/// ``KeyspaceNotices`` needs it.
final class Channels {
    private var names = LiteralTable<Channel>()
    private var shards = LiteralTable<Channel>()
    /// Patterns without a metacharacter.
    private var plainPatterns = LiteralTable<Channel>()
    /// Patterns with one: compared with the names that begin with their literal part.
    private var globs = LiteralTable<Channel>()
    private var nameList = ChannelList()
    private var shardList = ChannelList()
    private let notices = KeyspaceNotices()
    let flushes: FlushList
    let settings: Settings
    /// The encoded message that is being delivered.
    private var message = ByteBuffer()

    /// Messages that wait for the end of their command: name and payload, one after the other.
    private var outbox = ByteBuffer()
    private(set) var postponed: [Postponed] = []

    struct Postponed {
        let nameByteCount: Int
        let payloadByteCount: Int
        /// The subscribers when it was sent.
        var receivers: [(channel: Channel, subscribers: [Int: Connection])] = []
    }

    let memory: ClientMemory

    init(_ settings: Settings, _ flushes: FlushList, _ memory: ClientMemory) {
        (self.settings, self.flushes, self.memory) = (settings, flushes, memory)
        notices.channels = self
    }

    // MARK: Subscribing

    var nameCount: Int { names.count }
    var shardCount: Int { shards.count }
    var patternCount: Int { plainPatterns.count + globs.count }
    /// Watchers in the keyspace's hub that do not belong to STATE.WATCH.
    var watcherCount: Int { notices.watcherCount }

    /// Names with subscribers, or shard channels.
    subscript(list kind: Channel.Kind) -> ChannelList {
        get { kind == .shard ? shardList : nameList }
        _modify { if kind == .shard { yield &shardList } else { yield &nameList } }
    }

    /// How many connections subscribe to exactly this name.
    func subscriberCount(of name: Bytes, _ kind: Channel.Kind) -> Int {
        var count = 0
        (kind == .shard ? shards : names).forEach(under: name) { count = $0.subscribers.count }
        return count
    }

    /// Subscribes a connection; does nothing if it is subscribed already.
    func subscribe(
        _ connection: Connection,
        to bytes: Bytes,
        _ kind: Channel.Kind,
        _ core: KeyspaceCore
    ) {
        guard connection.session.subscriptions[kind][Array(bytes)] == nil else { return }
        let channel = find(kind, bytes) ?? insert(Channel(kind, bytes), core)
        channel.subscribers[connection.number] = connection
        connection.session.subscriptions[kind][channel.bytes] = channel
        connection.share.account?.globCount += channel.globCount
        connection.session.subscriptions.byteCount += Subscriptions.byteCount(of: channel)
        connection.session.isSubscribed = true
    }

    /// Ends a subscription, if there is one.
    func unsubscribe(
        _ connection: Connection,
        from bytes: [UInt8],
        _ kind: Channel.Kind,
        _ core: KeyspaceCore
    ) {
        guard let channel = connection.session.subscriptions[kind].removeValue(forKey: bytes) else {
            return
        }
        channel.subscribers[connection.number] = nil
        connection.share.account?.globCount -= channel.globCount
        connection.session.subscriptions.byteCount -= Subscriptions.byteCount(of: channel)
        connection.session.isSubscribed = connection.session.subscriptions.count > 0
        if channel.subscribers.isEmpty { remove(channel, core) }
    }

    /// Ends subscriptions of a connection, `count` of each kind at most.
    func unsubscribeAll(
        _ connection: Connection,
        _ core: KeyspaceCore,
        atMost count: Int = .max
    ) {
        for kind in [Channel.Kind.name, .pattern, .shard] {
            for bytes in Array(connection.session.subscriptions[kind].keys.prefix(count)) {
                unsubscribe(connection, from: bytes, kind, core)
            }
        }
    }

    private func find(_ kind: Channel.Kind, _ bytes: Bytes) -> Channel? {
        let searched = Channel(kind, bytes)
        var found: Channel?
        searched.pattern.literal.withUnsafeBytes { literal in
            self[keyPath: Channels.table(of: searched)].forEach(under: literal) { channel in
                if channel.bytes == searched.bytes { found = channel }
            }
        }
        return found
    }

    private func insert(_ channel: Channel, _ core: KeyspaceCore) -> Channel {
        self[keyPath: Channels.table(of: channel)].insert(channel, under: channel.pattern.literal)
        if channel.kind != .pattern { self[list: channel.kind].append(channel) }
        if channel.kind != .shard { notices.include(channel, core) }
        return channel
    }

    private func remove(_ channel: Channel, _ core: KeyspaceCore) {
        self[keyPath: Channels.table(of: channel)]
            .remove(channel, under: channel.pattern.literal)
        if channel.kind != .pattern { self[list: channel.kind].remove(channel) }
        if channel.kind != .shard { notices.exclude(channel, core) }
    }

    private static func table(
        of channel: Channel
    ) -> ReferenceWritableKeyPath<Channels, LiteralTable<Channel>> {
        switch (channel.kind, channel.pattern.kind) {
        case (.name, _): \.names
        case (.shard, _): \.shards
        case (.pattern, .key): \.plainPatterns
        case (.pattern, _): \.globs
        }
    }

    // MARK: Messages

    /// Delivers a message to all subscribers of its channel: first by name, then by pattern.
    ///
    /// The connection whose command is running must not be among them: see ``postpone(_:to:)``.
    ///
    /// - Parameters:
    ///   - payload: The message.
    ///   - name: The channel.
    ///   - isSharded: Whether it is a shard channel.
    ///   - audience: Who may receive it; nil: everybody.
    /// - Returns: The number of deliveries; several subscriptions of a connection may match.
    /// - Complexity: O(*n*) in the bytes of the name and in the deliveries, plus the cost of the
    ///   globs whose literal part is a prefix of the name.
    @discardableResult
    func publish(
        _ payload: Bytes,
        to name: Bytes,
        isSharded: Bool = false,
        for audience: Audience? = nil
    ) -> Int {
        var count = 0
        forEachMatch(name, isSharded: isSharded) { channel in
            let subscribers = channel.subscribers(in: audience)
            guard !subscribers.isEmpty else { return }
            count += subscribers.count
            send(payload, to: name, by: channel, subscribers)
        }
        return count
    }

    /// Keeps a message until ``publishPostponed()``.
    ///
    /// - Returns: The number of deliveries.
    func postpone(
        _ payload: Bytes,
        to name: Bytes,
        isSharded: Bool = false,
        for audience: Audience? = nil
    ) -> Int {
        outbox.append(name)
        outbox.append(payload)
        var message = Postponed(nameByteCount: name.count, payloadByteCount: payload.count)
        var count = 0
        forEachMatch(name, isSharded: isSharded) { channel in
            let subscribers = channel.subscribers(in: audience)
            count += subscribers.count
            message.receivers.append((channel, subscribers))
        }
        postponed.append(message)
        return count
    }

    /// Delivers the postponed messages, to those who subscribed then and still do.
    func publishPostponed() {
        var start = 0
        for message in postponed {
            let nameEnd = start + message.nameByteCount
            let end = nameEnd + message.payloadByteCount
            let (name, payload) = (
                outbox.bytes.slice(start, nameEnd), outbox.bytes.slice(nameEnd, end)
            )
            for (channel, subscribers) in message.receivers {
                let rest = subscribers.filter { channel.subscribers[$0.key] != nil }
                send(payload, to: name, by: channel, rest)
            }
            start = end
        }
        dropPostponed()
    }

    /// The command that sent them was undone.
    func dropPostponed() {
        outbox.removeAll()
        outbox.shrink(to: 64 << 10)
        postponed.removeAll(keepingCapacity: postponed.capacity <= 1_024)
    }

    private func forEachMatch(_ name: Bytes, isSharded: Bool, _ body: (Channel) -> Void) {
        guard !isSharded else { return shards.forEach(under: name, body) }
        names.forEach(under: name, body)
        plainPatterns.forEach(under: name, body)
        globs.forEach(atStartOf: name) { if $0.pattern.matches(name) { body($0) } }
    }

    private func send(
        _ payload: Bytes,
        to name: Bytes,
        by channel: Channel,
        _ subscribers: [Int: Connection]
    ) {
        write(payload, to: name, by: channel)
        for connection in subscribers.values { deliver(to: connection) }
        message.removeAll()
        message.shrink(to: 64 << 10)
    }

    private func write(_ payload: Bytes, to name: Bytes, by channel: Channel) {
        switch channel.kind {
        case .name, .shard:
            message.writeArray(3)
            message.writeBulk(channel.kind == .name ? "message" : "smessage")
        case .pattern:
            message.writeArray(4)
            message.writeBulk("pmessage")
            message.writeBulk(channel.bytes)
        }
        message.writeBulk(name)
        message.writeBulk(payload)
    }

    /// Sends a message that is no channel's, in the form of the connection's version.
    func deliver(_ frame: Bytes, to connection: Connection) {
        message.append(frame)
        deliver(to: connection)
        message.removeAll()
        message.shrink(to: 64 << 10)
    }

    private func deliver(to connection: Connection) {
        guard !connection.ending.isDue, !connection.isClosed else { return }
        guard hasRoom(connection), memory.hasRoom(for: message.count, of: connection) else {
            letGo(connection)
            return
        }
        connection.outbound.messageByteCount += message.count
        // The versions differ only in the first byte.
        message.replaceFirst(with: UInt8(ascii: connection.session.version == .resp3 ? ">" : "*"))
        // In RESP2 only the order distinguishes a message from a reply: it comes after earlier
        // replies.
        let waitsForReplies =
            connection.session.version == .resp2 || connection.outbound.isConfirmationHeld
        if waitsForReplies, !connection.outbound.held.isEmpty {
            connection.outbound.held.append(message.bytes)
        } else {
            connection.outbound.bytes.append(message.bytes)
        }
        // A message goes to every subscriber, so memory is counted here.
        memory.count(connection)
        flushes.add(connection)
    }
}
