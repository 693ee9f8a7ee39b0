import CLinux
import StateEngine
import StateWire

/// A name or a pattern that at least one connection subscribes to; patterns are those of one user.
final class Channel {
    /// A name is exactly that of SUBSCRIBE or SSUBSCRIBE; a pattern is a glob over whole names.
    typealias Kind = Command.ChannelKind
    /// By user, and by the numbers of the connections.
    typealias Subscribers = [UInt32: [Int: Connection]]

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
    private(set) var subscribers: Subscribers = [:]

    init(_ kind: Kind, _ bytes: Bytes) {
        self.kind = kind
        self.bytes = Array(bytes)
        pattern = kind == .pattern ? Pattern(redisGlob: bytes) : Pattern(Key(verified: bytes))
    }

    func add(_ connection: Connection) {
        subscribers[connection.peer.uid, default: [:]][connection.number] = connection
    }

    func remove(_ connection: Connection) {
        let uid = connection.peer.uid
        subscribers[uid]?[connection.number] = nil
        if subscribers[uid]?.isEmpty ?? false { subscribers[uid] = nil }
    }

    func has(_ connection: Connection) -> Bool {
        subscribers[connection.peer.uid]?[connection.number] != nil
    }
}

extension Channel.Subscribers {
    /// How many connections they are.
    var connectionCount: Int { values.reduce(0) { $0 + $1.count } }
}
