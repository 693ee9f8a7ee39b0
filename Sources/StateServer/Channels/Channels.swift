import CLinux
import StateEngine
import StateWire

/// The subscriptions, and the delivery of messages, which are not stored.
///
/// Messages go to each user apart: see ``UserSubscriptions``. Used only by the loop thread.
/// Subscriptions change under the keyspace's lock, because ``KeyspaceNotices`` needs it.
final class Channels {
    private var names = LiteralTable<Channel>()
    private var shards = LiteralTable<Channel>()
    private var users: [UInt32: UserSubscriptions] = [:]
    /// How many users subscribe to each pattern.
    private var userCounts: [[UInt8]: Int] = [:]
    private var nameList = ChannelList()
    private var shardList = ChannelList()
    /// The number of the last subscription or message.
    private var lastNumber = 0
    let flushes: FlushList
    let settings: Settings
    private let work: UnfinishedWork
    /// See ``takeNanosecondsOfReceivers()``.
    private var nanosecondsOfReceivers: Int64 = 0
    /// The encoded message that is being delivered.
    private var message = ByteBuffer()

    /// Messages that wait for the end of the command that is running; nil if there are none.
    private var postponed: Outbox?

    let memory: ClientMemory

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
        channel(named: name, isSharded: kind == .shard)?.connectionCount ?? 0
    }

    private func channel(named name: Bytes, isSharded: Bool) -> Channel? {
        var found: Channel?
        (isSharded ? shards : names).forEach(under: name) { found = $0 }
        return found
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
        let channel = find(kind, bytes, user) ?? Channel(kind, bytes)
        begin(Subscription(of: connection, to: channel, number: takeNumber()), user, core)
    }

    /// Begins again a subscription that has ended, as if it had not.
    func resume(_ subscription: Subscription, _ core: KeyspaceCore) {
        guard let user = user(of: subscription.connection) else { return }
        subscription.isActive = true
        begin(subscription, user, core)
    }

    private func begin(
        _ subscription: Subscription,
        _ user: UserSubscriptions,
        _ core: KeyspaceCore
    ) {
        let (connection, channel) = (subscription.connection, subscription.channel)
        if channel.subscriptions.isEmpty { insert(channel, user) }
        channel.add(subscription)
        connection.session.subscriptions[channel.kind][channel.bytes] = subscription
        user.notices.include(channel, of: connection, core)
        user.account.noteSubscribed(channel, by: 1)
        connection.session.subscriptions.byteCount += Subscriptions.byteCount(of: channel)
        connection.session.isSubscribed = true
        user.noteBegin()
    }

    /// Ends a subscription, if there is one.
    func unsubscribe(
        _ connection: Connection,
        from bytes: [UInt8],
        _ kind: Channel.Kind,
        _ core: KeyspaceCore
    ) {
        guard
            let subscription = connection.session.subscriptions[kind].removeValue(forKey: bytes),
            let user = user(of: connection)
        else { return }
        let channel = subscription.channel
        subscription.isActive = false
        channel.remove(subscription)
        user.notices.exclude(channel, of: connection, core)
        user.account.noteSubscribed(channel, by: -1)
        connection.session.subscriptions.byteCount -= Subscriptions.byteCount(of: channel)
        connection.session.isSubscribed = connection.session.subscriptions.count > 0
        if channel.subscriptions.isEmpty { remove(channel, user) }
        user.noteEnd()
        if user.isEmpty { users[user.uid] = nil }
    }

    /// What is kept for the user of a connection that has or gets a subscription.
    private func user(of connection: Connection) -> UserSubscriptions? {
        let uid = connection.peer.uid
        if let user = users[uid] { return user }
        guard let account = connection.share.account else { return nil }
        let user = UserSubscriptions(of: account, self)
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

    private func find(_ kind: Channel.Kind, _ bytes: Bytes, _ user: UserSubscriptions) -> Channel? {
        kind == .pattern
            ? user.pattern(Array(bytes)) : channel(named: bytes, isSharded: kind == .shard)
    }

    private func insert(_ channel: Channel, _ user: UserSubscriptions) {
        switch channel.kind {
        case .name: names.insert(channel, under: channel.bytes)
        case .shard: shards.insert(channel, under: channel.bytes)
        case .pattern:
            userCounts[channel.bytes, default: 0] += 1
            return user.insert(pattern: channel)
        }
        self[list: channel.kind].append(channel)
    }

    private func remove(_ channel: Channel, _ user: UserSubscriptions) {
        switch channel.kind {
        case .name: names.remove(channel, under: channel.bytes)
        case .shard: shards.remove(channel, under: channel.bytes)
        case .pattern:
            let count = userCounts[channel.bytes] ?? 0
            userCounts[channel.bytes] = count > 1 ? count - 1 : nil
            return user.remove(pattern: channel)
        }
        self[list: channel.kind].remove(channel)
    }

    /// The groups or the units of connections may be others.
    func accessChanged() { for user in users.values { user.forgetSubjects() } }

    /// Ends the subscribers of a user if more than so many bytes of messages wait for them.
    ///
    /// - Returns: Whether it did.
    func endSubscribers(
        of account: ClientMemory.Account,
        ifBehindByMoreThan byteCount: Int
    ) -> Bool {
        guard let user = users[account.uid], user.outbox.byteCount > byteCount,
            !user.outbox.isEmpty
        else { return false }
        user.giveUp()
        memory.refusedCount += 1
        return true
    }

    // MARK: Messages

    /// Sends a message to all who subscribe to its channel.
    ///
    /// A user whose subscriptions take long gets it later, in order. The connection whose command
    /// is running must not be among the subscribers: see ``postpone(_:to:isSharded:for:by:)``.
    ///
    /// - Parameters:
    ///   - payload: The message.
    ///   - name: The channel.
    ///   - isSharded: Whether it is a shard channel.
    ///   - audience: Who may receive it; nil: everybody.
    /// - Returns: The number of deliveries that were found in the time that there is for it;
    ///   several subscriptions of a connection may match.
    /// - Complexity: O(*n*) in the bytes of the name and in the users who subscribe to anything; for
    ///   each, what is compared and delivered at once is bounded.
    func publish(
        _ payload: Bytes,
        to name: Bytes,
        isSharded: Bool,
        for audience: Audience?
    ) -> Int {
        users.isEmpty
            ? 0 : send(payload, name, isSharded, audience, number: takeNumber()).deliveryCount
    }

    /// The number of a message that is sent now, or of a subscription that begins.
    func takeNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    private func send(
        _ payload: Bytes,
        _ name: Bytes,
        _ isSharded: Bool,
        _ audience: Audience?,
        number: Int
    ) -> (deliveryCount: Int, steps: Int) {
        var (deliveryCount, steps) = (0, 0)
        forEachReceiver(of: name, isSharded, audience) { user, found in
            deliveryCount += found.deliveryCount
            guard user.hasRoom() else { return }
            user.outbox.append(
                payload,
                to: name,
                isSharded: isSharded,
                for: audience,
                number: number,
                knowing: found.isWhole ? found.channels : nil
            )
            var left = Channels.stepsAtOnce
            user.deliver(atMost: &left, compares: false)
            steps += Channels.stepsAtOnce - left
        }
        return (deliveryCount, steps)
    }

    /// Calls `body` with each user who may receive a message, with what is found of its channels.
    private func forEachReceiver(
        of name: Bytes,
        _ isSharded: Bool,
        _ audience: Audience?,
        _ body: (UserSubscriptions, UserSubscriptions.Found) -> Void
    ) {
        let named = channel(named: name, isSharded: isSharded)
        for user in users.values
        where user.mayMatch(name, named, isSharded: isSharded) && user.mayReceive(audience) {
            let start = clinux_monotonic_nanoseconds()
            user.account.messages.refill(at: start)
            let found = user.find(name, named, isSharded: isSharded, audience)
            let used = clinux_monotonic_nanoseconds() - start
            user.account.nanoseconds += used
            nanosecondsOfReceivers += used
            if !found.isWhole || found.deliveryCount > 0 { body(user, found) }
        }
    }

    /// The time since the last call that receivers were charged for, not whose command it was.
    func takeNanosecondsOfReceivers() -> Int64 {
        defer { nanosecondsOfReceivers = 0 }
        return nanosecondsOfReceivers
    }

    /// Keeps a message of the running command until ``publishPostponed()``.
    ///
    /// - Returns: The number of deliveries that were found in the time that there is for it.
    func postpone(
        _ payload: Bytes,
        to name: Bytes,
        isSharded: Bool,
        for audience: Audience?,
        by connection: Connection
    ) -> Int {
        guard !users.isEmpty, let account = connection.share.account else { return 0 }
        let outbox = postponed ?? Outbox(for: account, of: connection)
        postponed = outbox
        let number = takeNumber()
        outbox.append(payload, to: name, isSharded: isSharded, for: audience, number: number)
        var count = 0
        forEachReceiver(of: name, isSharded, audience) { count += $1.deliveryCount }
        return count
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

    /// So many steps of a delivery are taken at once.
    ///
    /// They take 25 µs, and more if each is to another connection. After much more than a slice, the
    /// sender would rest.
    static let stepsAtOnce = 256
    /// So many steps of the comparison with globs, and so many subscribers that are looked up, take
    /// as long as one delivery.
    private static let stepsPerDelivery = 32

    /// Has the rest of the messages delivered after the events, in slices.
    func deliverInSlices(_ outbox: Outbox) {
        memory.count(outbox)
        guard !outbox.isInSlices else { return }
        outbox.isInSlices = true
        work.items.append(.messages(outbox))
    }

    /// Delivers messages of an outbox, in about so many steps: a step is a delivery, or a search
    /// that takes as long.
    ///
    /// - Returns: Whether all are delivered.
    func deliver(_ outbox: Outbox, atMost steps: inout Int) -> Bool {
        guard outbox.publisher == nil else { return distribute(outbox, atMost: &steps) }
        guard let user = users[outbox.account.uid] else { return true }
        guard deliver(to: user, atMost: &steps, compares: true) else { return false }
        if user.isEmpty { users[user.uid] = nil }
        return true
    }

    /// Sends the messages of a command to the users.
    private func distribute(_ outbox: Outbox, atMost steps: inout Int) -> Bool {
        while steps > 0, let (next, name, payload) = outbox.nextMessage {
            let sent = send(payload, name, next.isSharded, next.audience, number: next.number)
            steps -= 1 + sent.steps
            outbox.endMessage()
        }
        return outbox.isEmpty
    }

    /// The same for the outbox of a user.
    ///
    /// - Parameters:
    ///   - user: The user.
    ///   - steps: What it may take; becomes what is left.
    ///   - compares: Whether messages are compared with globs. If not, it ends before the first message
    ///     that has to be.
    /// - Returns: Whether all are delivered.
    func deliver(
        to user: UserSubscriptions,
        atMost steps: inout Int,
        compares: Bool
    ) -> Bool {
        let outbox = user.outbox
        while steps > 0, let (next, name, payload) = outbox.nextMessage {
            steps -= 1
            if outbox.delivery == nil {
                guard let found = next.channels else {
                    guard compares else { return false }
                    let named = channel(named: name, isSharded: next.isSharded)
                    let found = user.candidates(name, named, isSharded: next.isSharded)
                    steps -= found.count / Channels.stepsPerDelivery
                    outbox.delivery = .init(channels: found.reversed(), mustCompare: true)
                    continue
                }
                outbox.delivery = .init(channels: found.reversed(), mustCompare: false)
            }
            guard compares || !(outbox.delivery?.mustCompare ?? false) else { return false }
            let isDone = deliver(next, name, payload, of: outbox, atMost: &steps)
            if isDone { outbox.endMessage() }
        }
        return outbox.isEmpty
    }

    private func deliver(
        _ next: Outbox.Message,
        _ name: Bytes,
        _ payload: Bytes,
        of outbox: Outbox,
        atMost steps: inout Int
    ) -> Bool {
        var written: Channel?
        defer { endMessage() }
        while steps > 0 {
            guard let subscription = outbox.delivery?.subscriptions.popLast() else {
                guard let channel = outbox.delivery?.channels.popLast() else { return true }
                steps -= open(channel, name, of: outbox)
                continue
            }
            guard subscription.isActive, subscription.number < next.number,
                next.audience?.admits(subscription.connection.subject) ?? true
            else { continue }
            if written !== subscription.channel {
                message.removeAll()
                write(payload, to: name, by: subscription.channel)
                written = subscription.channel
            }
            deliver(to: subscription.connection)
            steps -= 1
        }
        return false
    }

    /// Goes on with the subscriptions to a channel, if it matches.
    ///
    /// - Returns: How many steps that took.
    private func open(_ channel: Channel, _ name: Bytes, of outbox: Outbox) -> Int {
        var left = 0
        let mustCompare = outbox.delivery?.mustCompare ?? true
        let isMatch = !mustCompare || channel.pattern.matches(name, counting: &left)
        if isMatch {
            let subscriptions = channel.subscriptions[outbox.account.uid] ?? [:]
            left -= subscriptions.count
            outbox.delivery?.subscriptions.append(contentsOf: subscriptions.values)
        }
        return 1 - left / Channels.stepsPerDelivery
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
