import StateEngine
import StateWire

/// A name or a pattern that at least one connection subscribes to.
final class Channel {
    /// A name is exactly that of SUBSCRIBE or SSUBSCRIBE; a pattern is a glob over whole names.
    typealias Kind = Command.ChannelKind

    let kind: Kind
    /// The name or glob of the subscription.
    let bytes: [UInt8]
    /// The pattern that the names of messages must match.
    let pattern: Pattern
    /// Whether names must be compared with a glob.
    var globCount: Int { kind == .pattern ? pattern.globCount : 0 }
    /// Its place in the list of its kind.
    var place = 0
    /// By the numbers of the connections.
    var subscribers: [Int: Connection] = [:]

    init(_ kind: Kind, _ bytes: Bytes) {
        self.kind = kind
        self.bytes = Array(bytes)
        pattern = kind == .pattern ? Pattern(redisGlob: bytes) : Pattern(Key(verified: bytes))
    }
}
