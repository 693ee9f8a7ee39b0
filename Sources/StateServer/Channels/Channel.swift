import CLinux
import StateEngine
import StateWire

/// A name or a pattern that at least one connection subscribes to; patterns are those of one user.
final class Channel {
    /// A name is exactly that of SUBSCRIBE or SSUBSCRIBE; a pattern is a glob over whole names.
    typealias Kind = Command.ChannelKind

    let kind: Kind
    /// The name or glob of the subscription.
    let bytes: [UInt8]
    /// The pattern that the names of messages must match.
    let pattern: Pattern
    /// The keys of whose changes its messages may be; nil if there are none.
    private(set) lazy var keys = kind == .shard ? nil : KeyspaceNotices.keys(of: self)
    /// Whether names must be compared with a glob.
    var globCount: Int { kind == .pattern ? pattern.globCount : 0 }
    /// Its place in the list of its kind.
    var place = 0
    /// By user, and by the numbers of the connections.
    private(set) var subscriptions: [UInt32: [Int: Subscription]] = [:]

    init(_ kind: Kind, _ bytes: Bytes) {
        self.kind = kind
        self.bytes = Array(bytes)
        pattern = kind == .pattern ? Pattern(redisGlob: bytes) : Pattern(Key(verified: bytes))
    }

    func add(_ subscription: Subscription) {
        let connection = subscription.connection
        subscriptions[connection.peer.uid, default: [:]][connection.number] = subscription
    }

    func remove(_ subscription: Subscription) {
        let connection = subscription.connection
        let uid = connection.peer.uid
        subscriptions[uid]?[connection.number] = nil
        if subscriptions[uid]?.isEmpty ?? false { subscriptions[uid] = nil }
    }

    /// How many connections subscribe to it.
    var connectionCount: Int { subscriptions.values.reduce(0) { $0 + $1.count } }

    func connectionCount(of user: UInt32) -> Int { subscriptions[user]?.count ?? 0 }

    /// How many connections of a user may receive a message for `audience`; nil: all.
    ///
    /// - Complexity: O(*n*) in the connections, if there is an audience.
    func connectionCount(of user: UInt32, in audience: Audience?) -> Int {
        guard let audience else { return connectionCount(of: user) }
        return subscriptions[user]?.values.count { audience.admits($0.connection.subject) } ?? 0
    }
}

/// That a connection subscribes to a channel.
///
/// Used only by the loop thread.
final class Subscription {
    let connection: Connection
    let channel: Channel
    /// It receives the messages with a larger number: those that were sent since.
    let number: Int
    /// Whether it has not ended.
    var isActive = true

    init(of connection: Connection, to channel: Channel, number: Int) {
        (self.connection, self.channel, self.number) = (connection, channel, number)
    }
}
