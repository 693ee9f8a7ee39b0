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
    /// By the numbers of the connections.
    var subscribers: [Int: Connection] = [:]

    init(_ kind: Kind, _ bytes: Bytes) {
        self.kind = kind
        self.bytes = Array(bytes)
        pattern = kind == .name ? Pattern(Key(verified: bytes)) : Pattern(redisGlob: bytes)
    }
}

/// Channels by the hash of their literal: of a whole name, or of what stands before the first metacharacter of a pattern.
///
/// A name finds those that it begins with by one walk over its bytes, which looks only at lengths that a literal has:
/// what it costs does not grow with the channels that do not match.
struct ChannelTable {
    /// Who is found by chance is sorted out by its literal.
    private var byHash: [Int: [Channel]] = [:]
    /// How many literals have each length.
    private var countsByLength: [Int] = []
    private(set) var count = 0

    var all: some Sequence<Channel> { byHash.values.joined() }

    mutating func insert(_ channel: Channel) {
        let length = channel.pattern.literal.count
        byHash[LiteralHash(of: channel.pattern.literal).value, default: []].append(channel)
        while countsByLength.count <= length { countsByLength.append(0) }
        countsByLength[length] += 1
        count += 1
    }

    mutating func remove(_ channel: Channel) {
        let hash = LiteralHash(of: channel.pattern.literal).value
        byHash[hash]?.removeAll { $0 === channel }
        if byHash[hash]?.isEmpty ?? false { byHash[hash] = nil }
        countsByLength[channel.pattern.literal.count] -= 1
        count -= 1
    }

    /// Calls `body` for each channel whose literal is `name`.
    ///
    /// - Complexity: O(*n*) in the bytes of the name, but for those that are found.
    func forEach(withLiteral name: Bytes, _ body: (Channel) -> Void) {
        guard count > 0 else { return }
        for channel in byHash[LiteralHash(of: name).value] ?? []
        where channel.pattern.literal.withUnsafeBytes(name.isEqual) { body(channel) }
    }

    /// Calls `body` for each channel with whose literal `name` begins, the shortest first.
    ///
    /// - Complexity: O(*n*) in the bytes of the name, but for those that are found.
    func forEach(atStartOf name: Bytes, _ body: (Channel) -> Void) {
        guard count > 0 else { return }
        var hash = LiteralHash()
        for length in 0..<min(name.count + 1, countsByLength.count) {
            if length > 0 { hash.take(name[length - 1]) }
            guard countsByLength[length] > 0,
                let found = byHash[hash.value]
            else { continue }
            let start = name.slice(0, length)
            for channel in found where channel.pattern.literal.withUnsafeBytes(start.isEqual) {
                body(channel)
            }
        }
    }
}
