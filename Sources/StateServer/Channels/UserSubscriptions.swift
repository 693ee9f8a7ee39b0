import StateEngine
import StateWire

/// The subscriptions of one user, and the messages on their way to its connections.
///
/// What the subscriptions of a user cost delays only the messages of that user: comparisons with
/// its globs have an allowance, and many deliveries go on in slices that are charged to the user.
/// A sender always makes some of them in its own time. So nobody sends to a user with an ordinary
/// number of subscriptions faster than these are served. Used only by the loop thread.
final class UserSubscriptions {
    let account: ClientMemory.Account
    /// What is not delivered yet, in the order in which it was sent.
    let outbox: Outbox
    private(set) lazy var notices = KeyspaceNotices(of: self, channels)
    private unowned let channels: Channels
    /// How many there are.
    private var count = 0
    /// All patterns, as they are written: many spellings may have the same literal part.
    private var patterns: [[UInt8]: Channel] = [:]
    /// Patterns without a metacharacter.
    private var plain = LiteralTable<Channel>()
    /// Patterns with one: compared with the names that begin with their literal part.
    private var globs = LiteralTable<Channel>()
    /// The different subjects of the connections that subscribe; nil if they may have changed.
    private var subjects: [Subject]?

    init(of account: ClientMemory.Account, _ channels: Channels) {
        (self.account, self.channels) = (account, channels)
        outbox = Outbox(for: account)
    }

    var uid: UInt32 { account.uid }
    /// Whether nothing is kept for it: it has no subscriptions, and no messages wait that it would get
    /// if a transaction that ended its subscriptions is undone.
    var isEmpty: Bool { count == 0 && outbox.isEmpty }

    // MARK: Subscribing

    func pattern(_ bytes: [UInt8]) -> Channel? { patterns[bytes] }

    func insert(pattern channel: Channel) {
        patterns[channel.bytes] = channel
        if channel.pattern.kind == .key {
            plain.insert(channel, under: channel.pattern.literal)
        } else {
            globs.insert(channel, under: channel.pattern.literal)
        }
    }

    func remove(pattern channel: Channel) {
        patterns[channel.bytes] = nil
        if channel.pattern.kind == .key {
            plain.remove(channel, under: channel.pattern.literal)
        } else {
            globs.remove(channel, under: channel.pattern.literal)
        }
    }

    /// A connection of the user has one more subscription.
    func noteBegin() {
        count += 1
        forgetSubjects()
    }

    /// One has ended.
    func noteEnd() {
        count -= 1
        forgetSubjects()
    }

    /// The groups or the unit of a connection may be others.
    func forgetSubjects() { subjects = nil }

    // MARK: Finding

    /// Whether a connection that subscribes may receive messages for `audience`.
    ///
    /// What rules hide from a user takes nothing of it. Otherwise a late message would tell of it.
    func mayReceive(_ audience: Audience?) -> Bool {
        guard let audience else { return true }
        if let subjects { return subjects.contains(where: audience.admits) }
        var found: [ObjectIdentifier: Subject] = [:]
        for connection in account.connections.values where connection.session.isSubscribed {
            found[ObjectIdentifier(connection.subject)] = connection.subject
        }
        subjects = Array(found.values)
        return found.values.contains(where: audience.admits)
    }

    /// Whether a message may match one of the subscriptions.
    ///
    /// - Complexity: O(*n*) in the bytes of the name, however many subscriptions there are.
    func mayMatch(_ name: Bytes, _ named: Channel?, isSharded: Bool) -> Bool {
        if let named, named.connectionCount(of: uid) > 0 { return true }
        return !isSharded && (plain.hasAny(under: name) || globs.hasAny(atStartOf: name))
    }

    /// The channels that a message may match: first that of its name, `named`, then by pattern.
    func candidates(_ name: Bytes, _ named: Channel?, isSharded: Bool) -> [Channel] {
        var found: [Channel] = []
        if let named, named.connectionCount(of: uid) > 0 { found.append(named) }
        guard !isSharded else { return found }
        plain.forEach(under: name) { found.append($0) }
        globs.forEach(atStartOf: name) { found.append($0) }
        return found
    }

    /// The channels of a message, and how many deliveries it has.
    struct Found {
        var channels: [Channel] = []
        var deliveryCount = 0
        /// Whether the allowance sufficed to find all.
        var isWhole = true
    }

    /// Finds the channels of a message with the allowance of the user.
    func find(_ name: Bytes, _ named: Channel?, isSharded: Bool, _ audience: Audience?) -> Found {
        var found = Found()
        guard account.messages.hasSteps else {
            found.isWhole = false
            return found
        }
        for channel in candidates(name, named, isSharded: isSharded) {
            guard let isMatch = account.messages.matches(channel.pattern, name) else {
                found.isWhole = false
                return found
            }
            guard isMatch else { continue }
            if audience != nil { account.messages.take(8 * channel.connectionCount(of: uid)) }
            let count = channel.connectionCount(of: uid, in: audience)
            guard count > 0 else { continue }
            found.channels.append(channel)
            found.deliveryCount += count
        }
        return found
    }

    // MARK: Delivering

    /// Delivers messages in about so many steps at once, and the rest in slices.
    ///
    /// If it may not compare with globs, that begins with the first message that needs it.
    func deliver(atMost steps: inout Int, compares: Bool) {
        if !channels.deliver(to: self, atMost: &steps, compares: compares) {
            channels.deliverInSlices(outbox)
        }
        channels.memory.count(outbox)
    }

    /// Whether the messages that wait are within their limit; otherwise drops them, and ends the
    /// connections that subscribe: a Redis client has no way to learn of a gap.
    func hasRoom() -> Bool {
        if outbox.byteCount <= channels.settings.options.outputByteCount { return true }
        giveUp()
        return false
    }

    func giveUp() {
        outbox.removeAll()
        channels.memory.count(outbox)
        for connection in account.connections.values where connection.session.isSubscribed {
            channels.letGo(connection, isBehind: true)
        }
    }
}
