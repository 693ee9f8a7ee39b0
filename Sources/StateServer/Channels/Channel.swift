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
    /// As it was subscribed to.
    let bytes: [UInt8]
    /// What messages are compared with.
    let pattern: Pattern
    /// Whether messages are compared with it.
    var isGlob: Bool { kind == .pattern && pattern.kind == .glob }
    /// By the numbers of the connections.
    var subscribers: [Int: Connection] = [:]

    init(_ kind: Kind, _ bytes: Bytes) {
        self.kind = kind
        self.bytes = Array(bytes)
        pattern = kind == .name ? Pattern(Key(verified: bytes)) : Pattern(redisGlob: bytes)
    }
}
