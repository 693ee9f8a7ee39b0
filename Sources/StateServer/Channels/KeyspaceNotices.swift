import CLinux
import StateEngine
import StateWire

/// Keyspace notifications: each committed change of a key as messages to `__keyspace@0__:KEY` and
/// `__keyevent@0__:OP`.
///
/// The keys of all subscriptions of a user are the patterns of one watcher. So a write whose key
/// nobody follows costs one look-up in the hub, and nothing if there are no such subscriptions.
/// Messages are delivered like a watch: when the commit is durable, in the order of revisions, and
/// before the replies that wait for it, unless a user's subscriptions take too long for that: then
/// the messages of this user follow in slices, behind those that wait already.
final class KeyspaceNotices: WatchReceiver {
    static let keyspace: StaticString = "__keyspace@0__:"
    static let keyEvent: StaticString = "__keyevent@0__:"
    private static let operations: [StaticString] = [
        "set", "del", "expired", "expire", "persist", "incrby", "incrbyfloat", "append",
        "setrange", "rename_from", "rename_to", "copy_to", "restore",
    ]

    private unowned let user: UserSubscriptions
    private unowned let channels: Channels
    /// Nil if the user follows no keys.
    private var watcher: Watcher?
    /// How many subscriptions need each of its patterns.
    private var counts: [Pattern: Int] = [:]
    /// The connections that follow keys, with the number of their subscriptions.
    private var followers: [Int: (connection: Connection, count: Int)] = [:]
    /// How many steps of a delivery are left for now before it goes on in slices.
    private var stepsLeft = Channels.stepsAtOnce
    private var refilledAt: Int64 = 0
    /// The name of the current channel.
    private var name = ByteBuffer()

    init(of user: UserSubscriptions, _ channels: Channels) {
        (self.user, self.channels) = (user, channels)
    }

    var watcherCount: Int { watcher == nil ? 0 : 1 }

    // MARK: Followed keys

    /// Follows the keys of whose changes a subscription may tell.
    func include(_ channel: Channel, of connection: Connection, _ core: KeyspaceCore) {
        guard let pattern = channel.keys else { return }
        followers[connection.number, default: (connection, 0)].count += 1
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

    /// A subscription to a channel has ended.
    func exclude(_ channel: Channel, of connection: Connection, _ core: KeyspaceCore) {
        guard let watcher, let pattern = channel.keys, let count = counts[pattern] else { return }
        if followers[connection.number]?.count == 1 {
            followers[connection.number] = nil
        } else {
            followers[connection.number]?.count -= 1
        }
        counts[pattern] = count > 1 ? count - 1 : nil
        if count == 1 { core.hub.remove(pattern, from: watcher) }
        if counts.isEmpty {
            core.hub.remove(watcher, patterns: [])
            self.watcher = nil
        }
    }

    /// The keys whose changes a channel may carry; nil if there are none.
    ///
    /// A pattern with a metacharacter before the key, such as `__key*__:*`, may match all.
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
            guard keys.kind == .glob else { return keys }
            // The names of messages are compared with the globs, in slices: here only the literal
            // part counts. The hub finds a pattern that ends in '/' by hash, as a prefix.
            let isPrefix = keys.literal.isEmpty || keys.literal.last == UInt8(ascii: "/")
            return isPrefix ? Pattern(literalPartOf: keys) : Pattern(beginningOf: keys)
        }
        let isOfKeys = literal.hasPrefix(keyspace) || keyspace.hasPrefix(literal)
        return isOfKeys || isKeyEvent(pattern.matches) ? .everything : nil
    }

    /// Whether it is a channel of operations.
    private static func isKeyEvent(_ isMeant: (Bytes) -> Bool) -> Bool {
        operations.contains { operation in
            let name = Array(Bytes(keyEvent)) + Array(Bytes(operation))
            return name.withUnsafeBytes(isMeant)
        }
    }

    // MARK: Delivering

    /// ``Channels`` ends the connection of a client that does not read, or takes too long.
    var hasRoom: Bool { true }

    func receive(_ notice: Watcher.Notice, in core: KeyspaceCore) {
        // The watcher begins synced and always has room, so it gets no pieces and no gap.
        guard case .commit(_, let changes) = notice else { return }
        // Order matters: a change that rules hide costs the user nothing, and ends nothing. Otherwise a
        // late message, or the end of a full outbox, would tell of it.
        lazy var subjects = followerSubjects
        let shown = changes.compactMap { change -> (Record, Audience?)? in
            guard let audience = core.audience(of: change) else { return (change, nil) }
            return subjects.contains(where: audience.admits) ? (change, audience) : nil
        }
        guard !shown.isEmpty else { return }
        guard user.hasRoom() else { return }
        let number = channels.takeNumber()
        for (change, audience) in shown {
            send(operation(change, in: core), of: change.key, audience, number)
            let isTimed = change.operation == .timedSet && !change.isDeleted
            if isTimed { send("expire", of: change.key, audience, number) }
        }
        deliver()
    }

    /// Who follows keys: nearly always one subject, which all connections of a user share.
    private var followerSubjects: [Subject] {
        var subjects: [ObjectIdentifier: Subject] = [:]
        for follower in followers.values {
            let subject = follower.connection.subject
            subjects[ObjectIdentifier(subject)] = subject
        }
        return Array(subjects.values)
    }

    /// Delivers at once what is left for now, and the rest in slices.
    private func deliver() {
        let now = clinux_monotonic_nanoseconds()
        let steps = Int(clamping: (now - refilledAt) / KeyspaceNotices.nanosecondsPerStep)
        if steps > 0 {
            stepsLeft = min(Channels.stepsAtOnce, stepsLeft + steps)
            refilledAt = now
        }
        user.deliver(atMost: &stepsLeft, compares: true)
    }

    /// Each step is given back after so long: a delivery takes a tenth of that.
    private static let nanosecondsPerStep: Int64 = 1_000

    /// What Redis calls a change.
    private func operation(_ change: Record, in core: KeyspaceCore) -> StaticString {
        if change.isDeleted {
            if change.operation == .renameFrom { return "rename_from" }
            return core.cause(of: change).isExpiry ? "expired" : "del"
        }
        if change.isRenewal { return change.hasDeadline ? "expire" : "persist" }
        return switch change.operation {
        case .plain, .timedSet, .renameFrom: "set"
        case .add: "incrby"
        case .addFloat: "incrbyfloat"
        case .append: "append"
        case .setRange: "setrange"
        case .renameTo: "rename_to"
        case .copyTo: "copy_to"
        case .restore: "restore"
        }
    }

    private func send(
        _ operation: StaticString,
        of key: Bytes,
        _ audience: Audience?,
        _ number: Int
    ) {
        let operation = Bytes(operation)
        send(KeyspaceNotices.keyspace, key, operation, audience, number)
        send(KeyspaceNotices.keyEvent, operation, key, audience, number)
    }

    private func send(
        _ start: StaticString,
        _ end: Bytes,
        _ payload: Bytes,
        _ audience: Audience?,
        _ number: Int
    ) {
        name.removeAll()
        name.append(start)
        name.append(end)
        let outbox = user.outbox
        outbox.append(payload, to: name.bytes, isSharded: false, for: audience, number: number)
    }
}

extension UnsafeRawBufferPointer {
    init(_ text: StaticString) {
        self.init(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// The bytes as text for a message.
    var shown: String { String(decoding: self, as: UTF8.self) }
}
