import CLinux
import StateEngine
import StateWire

/// The subscriptions, and the delivery of messages, which are not stored.
///
/// Names are compared with the globs of each user apart, and what that costs in the keyspace
/// notifications of a user delays only these. Used only by the loop thread. Subscriptions change
/// under the keyspace's lock, because ``KeyspaceNotices`` needs it.
final class Channels {
    private var names = LiteralTable<Channel>()
    private var shards = LiteralTable<Channel>()
    private var users: [UInt32: UserPatterns] = [:]
    /// How many users subscribe to each pattern.
    private var userCounts: [[UInt8]: Int] = [:]
    private var nameList = ChannelList()
    private var shardList = ChannelList()
    let flushes: FlushList
    let settings: Settings
    private let work: UnfinishedWork
    /// The encoded message that is being delivered.
    private var message = ByteBuffer()

    /// Messages that wait for the end of the command that is running; nil if there are none.
    private var postponed: Outbox?

    let memory: ClientMemory

    /// The subscriptions of one user that are not looked up by the name of a message.
    private final class UserPatterns {
        /// Patterns without a metacharacter.
        var plain = LiteralTable<Channel>()
        /// Patterns with one: compared with the names that begin with their literal part.
        var globs = LiteralTable<Channel>()
        let notices: KeyspaceNotices
        /// How many subscriptions its connections have.
        var subscriptionCount = 0

        init(_ notices: KeyspaceNotices) { self.notices = notices }
    }

    init(
        _ settings: Settings,
        _ flushes: FlushList,
        _ memory: ClientMemory,
        _ work: UnfinishedWork
    ) {
        (self.settings, self.flushes) = (settings, flushes)
        (self.memory, self.work) = (memory, work)
    }

    // MARK: Subscribing

    var nameCount: Int { names.count }
    var shardCount: Int { shards.count }
    var patternCount: Int { userCounts.count }
    /// Watchers in the keyspace's hub that do not belong to STATE.WATCH.
    var watcherCount: Int { users.values.reduce(0) { $0 + $1.notices.watcherCount } }

    /// Names with subscribers, or shard channels.
    subscript(list kind: Channel.Kind) -> ChannelList {
        get { kind == .shard ? shardList : nameList }
        _modify { if kind == .shard { yield &shardList } else { yield &nameList } }
    }

    /// How many connections subscribe to exactly this name.
    func subscriberCount(of name: Bytes, _ kind: Channel.Kind) -> Int {
        var count = 0
        (kind == .shard ? shards : names).forEach(under: name) {
            count = $0.subscribers.connectionCount
        }
        return count
    }

    /// Subscribes a connection; does nothing if it is subscribed already.
    func subscribe(
        _ connection: Connection,
        to bytes: Bytes,
        _ kind: Channel.Kind,
        _ core: KeyspaceCore
    ) {
        guard connection.session.subscriptions[kind][Array(bytes)] == nil,
            let user = user(of: connection)
        else { return }
        let channel = find(kind, bytes, user) ?? insert(Channel(kind, bytes), user)
        channel.add(connection)
        connection.session.subscriptions[kind][channel.bytes] = channel
        user.subscriptionCount += 1
        user.notices.include(channel, of: connection, core)
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
        guard let channel = connection.session.subscriptions[kind].removeValue(forKey: bytes),
            let user = user(of: connection)
        else { return }
        channel.remove(connection)
        user.notices.exclude(channel, of: connection, core)
        connection.share.account?.globCount -= channel.globCount
        connection.session.subscriptions.byteCount -= Subscriptions.byteCount(of: channel)
        connection.session.isSubscribed = connection.session.subscriptions.count > 0
        if channel.subscribers.isEmpty { remove(channel, user) }
        user.subscriptionCount -= 1
        if user.subscriptionCount == 0 { users[connection.peer.uid] = nil }
    }

    /// What is kept for the user of a connection that has or gets a subscription.
    private func user(of connection: Connection) -> UserPatterns? {
        let uid = connection.peer.uid
        if let user = users[uid] { return user }
        guard let account = connection.share.account else { return nil }
        let user = UserPatterns(KeyspaceNotices(for: account, self))
        users[uid] = user
        return user
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

    private func find(_ kind: Channel.Kind, _ bytes: Bytes, _ user: UserPatterns) -> Channel? {
        let searched = Channel(kind, bytes)
        var found: Channel?
        searched.pattern.literal.withUnsafeBytes { literal in
            withTable(of: searched, user) { table in
                table.forEach(under: literal) { channel in
                    if channel.bytes == searched.bytes { found = channel }
                }
            }
        }
        return found
    }

    private func insert(_ channel: Channel, _ user: UserPatterns) -> Channel {
        withTable(of: channel, user) { $0.insert(channel, under: channel.pattern.literal) }
        if channel.kind == .pattern {
            userCounts[channel.bytes, default: 0] += 1
        } else {
            self[list: channel.kind].append(channel)
        }
        return channel
    }

    private func remove(_ channel: Channel, _ user: UserPatterns) {
        withTable(of: channel, user) { $0.remove(channel, under: channel.pattern.literal) }
        guard channel.kind == .pattern else { return self[list: channel.kind].remove(channel) }
        let count = userCounts[channel.bytes] ?? 0
        userCounts[channel.bytes] = count > 1 ? count - 1 : nil
    }

    private func withTable(
        of channel: Channel,
        _ user: UserPatterns,
        _ body: (inout LiteralTable<Channel>) -> Void
    ) {
        switch (channel.kind, channel.pattern.kind) {
        case (.name, _): body(&names)
        case (.shard, _): body(&shards)
        case (.pattern, .key): body(&user.plain)
        case (.pattern, _): body(&user.globs)
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
        var (count, steps) = (0, Int.max)
        forEachMatch(name, isSharded: isSharded, counting: &steps) { channel in
            let subscribers = channel.subscribers(in: audience)
            guard !subscribers.isEmpty else { return }
            count += subscribers.connectionCount
            write(payload, to: name, by: channel)
            for connections in subscribers.values {
                for connection in connections.values { deliver(to: connection) }
            }
            endMessage()
        }
        return count
    }

    /// Keeps a message of the running command until ``publishPostponed()``.
    ///
    /// - Returns: The number of deliveries, without subscribers for which a command with many
    ///   messages has no time before its reply; these receive it, too.
    func postpone(
        _ payload: Bytes,
        to name: Bytes,
        isSharded: Bool = false,
        for audience: Audience? = nil,
        by connection: Connection
    ) -> Int {
        guard let account = connection.share.account else { return 0 }
        let outbox = postponed ?? Outbox(of: connection, account)
        postponed = outbox
        guard outbox.searchStepsLeft > 0 else {
            outbox.append(payload, to: name, isSharded: isSharded, for: audience, nil)
            return 0
        }
        let receivers = receivers(
            of: name,
            isSharded: isSharded,
            for: audience,
            counting: &outbox.searchStepsLeft
        )
        outbox.append(payload, to: name, isSharded: isSharded, for: audience, receivers)
        return receivers.reduce(0) { $0 + $1.subscribers.connectionCount }
    }

    /// Delivers the postponed messages, to those who subscribed then and still do.
    ///
    /// If there are many, the rest is delivered in slices, and the next command of the connection
    /// waits for that.
    func publishPostponed() {
        guard let outbox = postponed else { return }
        postponed = nil
        var steps = Channels.stepsAtOnce
        guard !deliver(outbox, atMost: &steps) else { return }
        outbox.publisher?.inbound.awaitsLateReply = true
        deliverInSlices(outbox)
    }

    /// The command that sent them was undone.
    func dropPostponed() { postponed = nil }

    /// So many steps of a delivery are taken at once: 0.1 ms, as long as a slice.
    static let stepsAtOnce = 1_024
    /// So many steps of the comparison with globs, and so many subscribers that are looked up, take
    /// as long as one delivery.
    private static let stepsPerDelivery = 32

    /// Has the rest of the messages delivered after the events, in slices.
    func deliverInSlices(_ outbox: Outbox) {
        guard !outbox.isInSlices else { return }
        outbox.isInSlices = true
        work.items.append(.messages(outbox))
    }

    /// Delivers messages of an outbox, in about so many steps: a step is a delivery, or a search
    /// that takes as long.
    ///
    /// - Returns: Whether all are delivered.
    func deliver(_ outbox: Outbox, atMost steps: inout Int) -> Bool {
        while steps > 0, let (message, name, payload) = outbox.nextMessage {
            deliver(message, name, payload, of: outbox, &steps)
        }
        return outbox.isEmpty
    }

    private func deliver(
        _ next: Outbox.Message,
        _ name: Bytes,
        _ payload: Bytes,
        of outbox: Outbox,
        _ steps: inout Int
    ) {
        steps -= 1
        if !outbox.hasConnections {
            var left = 0
            let found =
                next.receivers
                ?? receivers(
                    of: name,
                    isSharded: next.isSharded,
                    for: next.audience,
                    of: outbox.user,
                    counting: &left
                )
            let count = found.reduce(0) { $0 + $1.subscribers.connectionCount }
            steps -= (count - left) / Channels.stepsPerDelivery
            outbox.begin(found)
        }
        var last: Channel?
        defer { endMessage() }
        while steps > 0 {
            guard let (channel, connection) = outbox.takeConnection() else {
                return outbox.endMessage()
            }
            guard channel.has(connection) else { continue }
            if channel !== last {
                message.removeAll()
                write(payload, to: name, by: channel)
                last = channel
            }
            deliver(to: connection)
            steps -= 1
        }
    }

    /// The subscribers of the channels and patterns that a message matches, of one user or of all.
    private func receivers(
        of name: Bytes,
        isSharded: Bool,
        for audience: Audience?,
        of user: UInt32? = nil,
        counting steps: inout Int
    ) -> [Outbox.Receivers] {
        var receivers: [Outbox.Receivers] = []
        var asked = 0
        forEachMatch(name, isSharded: isSharded, of: user, counting: &steps) { channel in
            asked += audience == nil ? 1 : channel.subscribers.connectionCount
            var subscribers = channel.subscribers
            if let user { subscribers = subscribers[user].map { [user: $0] } ?? [:] }
            subscribers = subscribers.admitted(by: audience)
            if !subscribers.isEmpty { receivers.append((channel, subscribers)) }
        }
        steps -= asked
        return receivers
    }

    private func forEachMatch(
        _ name: Bytes,
        isSharded: Bool,
        of user: UInt32? = nil,
        counting steps: inout Int,
        _ body: (Channel) -> Void
    ) {
        guard !isSharded else { return shards.forEach(under: name, body) }
        names.forEach(under: name, body)
        var left = steps
        func match(_ user: UserPatterns) {
            user.plain.forEach(under: name, body)
            user.globs.forEach(atStartOf: name) { channel in
                left -= 8
                if channel.pattern.matches(name, counting: &left) { body(channel) }
            }
        }
        if let user { users[user].map(match) } else { users.values.forEach(match) }
        steps = left
    }

    private func endMessage() {
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
        endMessage()
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
