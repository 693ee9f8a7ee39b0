import StateEngine

/// A name or a pattern that at least one connection subscribes to.
final class Channel {
    enum Kind {
        /// Of SUBSCRIBE: exactly this name.
        case name
        /// Of PSUBSCRIBE: a glob over whole names.
        case pattern
    }

    let kind: Kind
    /// The name or glob of the subscription.
    let bytes: [UInt8]
    /// The pattern that the names of messages must match.
    let pattern: Pattern
    /// Whether names must be compared with a glob.
    var isGlob: Bool { kind == .pattern && pattern.kind == .glob }
    /// By the numbers of the connections.
    var subscribers: [Int: Connection] = [:]

    init(_ kind: Kind, _ bytes: Bytes) {
        self.kind = kind
        self.bytes = Array(bytes)
        pattern = kind == .name ? Pattern(Key(verified: bytes)) : Pattern(redisGlob: bytes)
    }
}
