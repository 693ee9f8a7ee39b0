import StateEngine
import StateWire

/// Keyspace notifications: each committed change of a key as messages to `__keyspace@0__:KEY` and `__keyevent@0__:OP`.
///
/// The keys of all subscriptions are the patterns of one watcher, so that a write whose key nobody follows costs what the hub's
/// look-up costs, and nothing where there is no such subscription. Told as a watch is: when the commit is durable, in the order of
/// revisions, before the replies that wait for it.
final class KeyspaceNotices: WatchReceiver {
    static let keyspace: StaticString = "__keyspace@0__:"
    static let keyEvent: StaticString = "__keyevent@0__:"
    private static let operations: [StaticString] = ["set", "del"]

    /// Set once, by who owns this.
    unowned var channels: Channels?
    /// There is one where somebody follows keys.
    private var watcher: Watcher?
    /// How many channels need each of its patterns.
    private var counts: [Pattern: Int] = [:]
    /// The name of the channel under way.
    private var name = ByteBuffer()

    var watcherCount: Int { watcher == nil ? 0 : 1 }

    // MARK: What is followed

    /// Follows the keys that a channel may tell of.
    func include(_ channel: Channel, _ core: KeyspaceCore) {
        guard let pattern = KeyspaceNotices.keys(of: channel) else { return }
        counts[pattern, default: 0] += 1
        guard counts[pattern] == 1 else { return }
        if watcher == nil {
            let watcher = Watcher(PatternSet([]), .now, in: core)
            watcher.receiver = self
            core.hub.add(watcher)
            self.watcher = watcher
        }
        if let watcher { core.hub.add(pattern, to: watcher) }
    }

    /// The last subscription to a channel has ended.
    func exclude(_ channel: Channel, _ core: KeyspaceCore) {
        guard let watcher, let pattern = KeyspaceNotices.keys(of: channel),
            let count = counts[pattern]
        else { return }
        counts[pattern] = count > 1 ? count - 1 : nil
        if count == 1 { core.hub.remove(pattern, from: watcher) }
        if counts.isEmpty {
            core.hub.remove(watcher, patterns: [])
            self.watcher = nil
        }
    }

    /// The keys whose changes a channel may tell of; nil where there are none.
    ///
    /// A pattern with a metacharacter before the key, such as `__key*__:*`, may tell of all.
    static func keys(of channel: Channel) -> Pattern? {
        channel.pattern.literal.withUnsafeBytes { literal in
            if channel.pattern.kind == .key { return keys(ofName: literal) }
            return channel.bytes.withUnsafeBytes { keys(ofGlob: $0, channel.pattern, literal) }
        }
    }

    private static func keys(ofName name: Bytes) -> Pattern? {
        let keyspace = Bytes(keyspace)
        if name.hasPrefix(keyspace) {
            let key = name.slice(keyspace.count, name.count)
            return Key.fault(of: key) == nil ? Pattern(Key(verified: key)) : nil
        }
        return isKeyEvent(name.isEqual) ? .everything : nil
    }

    private static func keys(ofGlob glob: Bytes, _ pattern: Pattern, _ literal: Bytes) -> Pattern? {
        let keyspace = Bytes(keyspace)
        if glob.hasPrefix(keyspace) {
            let keys = Pattern(redisGlob: glob.slice(keyspace.count, glob.count))
            // The hub finds what ends in '/' by hash, as a prefix.
            let isPrefix = keys.literal.isEmpty || keys.literal.last == UInt8(ascii: "/")
            let isAllBelow = keys.bytes == keys.literal + [UInt8(ascii: "*")]
            return isPrefix && isAllBelow ? Pattern(literalPartOf: keys) : keys
        }
        let isOfKeys = literal.hasPrefix(keyspace) || keyspace.hasPrefix(literal)
        return isOfKeys || isKeyEvent(pattern.matches) ? .everything : nil
    }

    /// Whether a channel of operations is meant.
    private static func isKeyEvent(_ isMeant: (Bytes) -> Bool) -> Bool {
        operations.contains { operation in
            let name = Array(Bytes(keyEvent)) + Array(Bytes(operation))
            return name.withUnsafeBytes(isMeant)
        }
    }

    // MARK: Telling

    /// A client that does not read is let go by ``Channels``.
    var hasRoom: Bool { true }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        // It begins synced and always has room: no pieces and no gap.
        guard case .commit(_, let changes) = notice else { return }
        for change in changes {
            let operation = Bytes(KeyspaceNotices.operations[change.isDeleted ? 1 : 0])
            let audience = core.audience(of: change)
            tell(KeyspaceNotices.keyspace, change.key, operation, audience)
            tell(KeyspaceNotices.keyEvent, operation, change.key, audience)
        }
    }

    private func tell(
        _ start: StaticString,
        _ end: Bytes,
        _ payload: Bytes,
        _ audience: Audience?
    ) {
        name.removeAll()
        name.append(start)
        name.append(end)
        channels?.publish(payload, to: name.bytes, for: audience)
    }
}

extension UnsafeRawBufferPointer {
    init(_ text: StaticString) {
        self.init(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }
}
