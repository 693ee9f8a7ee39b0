import StateEngine
import StateWire

/// The state that a client has set up: protocol version, transaction, subscriptions.
struct Session {
    var version = ProtocolVersion.resp2
    var client = ClientNames()
    /// The cause of its commits; nil before its first write.
    var cause: InternedCause?
    var transaction: QueuedTransaction?
    var watchedKeys: [WatchedKey] = [] {
        didSet { if watchedKeys.isEmpty { watchedKeyByteCount = 0 } }
    }
    /// The keys of WATCH.
    var watchedKeyByteCount = 0
    /// The metadata names of the named handlers that it has claimed.
    var handlers: [String] = []
    var subscriptions = Subscriptions()
    /// Whether there are any.
    var isSubscribed = false
    var usage = Usage()
    /// Whether it is sent every command of every client (MONITOR).
    var isMonitor = false
    /// Which replies are not sent (CLIENT REPLY).
    var silence = Silence.none
    /// Which copies of values its client keeps (CLIENT TRACKING); nil if it keeps none.
    var tracking: TrackedClient?
    /// The backup that it reads piece by piece; nil if it reads none.
    var backup: BackupReading?
    /// How often the access rules had changed when its last read of the history began.
    var accessCount = 0

    /// What the client has said of itself.
    struct ClientNames {
        var name: [UInt8] = []
        /// Whether EXEC has set the name: its commit keeps the cause with the old one.
        var isNew = false
        var library: [UInt8] = []
        var libraryVersion: [UInt8] = []
    }

    /// What the client has done.
    struct Usage {
        var commandCount = 0
        /// Commits that it has made, with those that storage refused later.
        var commitCount = 0
        /// The last command, and its wall time in milliseconds since 1970.
        var lastCommand: Verb.Name?
        var lastCommandAt: Int64 = 0
    }

    /// A key of WATCH with its revision then.
    struct WatchedKey {
        let key: [UInt8]
        /// 0: absent.
        let revision: Int64
        /// What shows a change of a key that was absent; nil if it was not.
        let absence: AbsentKey?
    }

    /// CLIENT REPLY.
    enum Silence {
        case none
        case all
        /// After the reply of the command that is running, none for the next one.
        case afterThis
        case once
    }

    /// The approximate memory of a key of WATCH.
    static func byteCount(ofWatched key: [UInt8]) -> Int { key.count * 3 + 256 }

    /// Ends WATCH, of `count` keys at most.
    mutating func forgetWatchedKeys(_ core: KeyspaceCore, atMost count: Int = .max) {
        for case let absence? in watchedKeys.suffix(count).map(\.absence) { core.end(absence) }
        watchedKeys.removeLast(min(count, watchedKeys.count))
    }
}

/// The subscriptions of one connection.
struct Subscriptions {
    private var names: [[UInt8]: Subscription] = [:]
    private var patterns: [[UInt8]: Subscription] = [:]
    private var shards: [[UInt8]: Subscription] = [:]

    var count: Int { names.count + patterns.count + shards.count }

    /// What a confirmation counts: shard channels are counted apart.
    func count(with kind: Channel.Kind) -> Int {
        kind == .shard ? shards.count : names.count + patterns.count
    }

    /// Their approximate memory.
    var byteCount = 0

    /// The approximate memory of a subscription: its name is kept as bytes and as a pattern.
    static func byteCount(of channel: Channel) -> Int { 3 * channel.bytes.count + 400 }

    subscript(kind: Channel.Kind) -> [[UInt8]: Subscription] {
        get {
            switch kind {
            case .name: names
            case .pattern: patterns
            case .shard: shards
            }
        }
        _modify {
            switch kind {
            case .name: yield &names
            case .pattern: yield &patterns
            case .shard: yield &shards
            }
        }
    }
}
