import StateEngine
import StateWire

/// What a client has said of itself and begun: its version of the protocol, its transaction, its subscriptions.
struct Session {
    var version = ProtocolVersion.resp2
    var name: [UInt8] = []
    /// Who its commits are by; nil before its first write.
    var cause: InternedCause?
    var transaction: QueuedTransaction?
    var watchedKeys: [WatchedKey] = [] {
        didSet { if watchedKeys.isEmpty { watchedKeyByteCount = 0 } }
    }
    /// The keys of WATCH.
    var watchedKeyByteCount = 0
    /// The notes of the named handlers that it has.
    var handlers: [String] = []
    var subscriptions = Subscriptions()
    /// Whether there are any.
    var isSubscribed = false
    var commandCount = 0
    /// How often the rules of access had changed when its last read of the history was begun.
    var accessCount = 0

    /// A key of WATCH as it was then.
    struct WatchedKey {
        let key: [UInt8]
        /// 0: absent.
        let revision: Int64
    }
}

/// What one connection subscribes to.
struct Subscriptions {
    private var names: [[UInt8]: Channel] = [:]
    private var patterns: [[UInt8]: Channel] = [:]

    var count: Int { names.count + patterns.count }
    /// About how much memory they take.
    var byteCount = 0

    /// About how much memory a subscription takes: its name is kept as it came, and as a pattern.
    static func byteCount(of channel: Channel) -> Int { 3 * channel.bytes.count + 400 }

    subscript(kind: Channel.Kind) -> [[UInt8]: Channel] {
        get { kind == .name ? names : patterns }
        _modify {
            switch kind {
            case .name: yield &names
            case .pattern: yield &patterns
            }
        }
    }
}
