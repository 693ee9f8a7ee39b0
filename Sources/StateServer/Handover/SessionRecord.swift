import StateEngine
import StateWire

/// A connection as the next process needs it to go on with it; its peer it asks the kernel about.
struct SessionRecord {
    var number = 0
    /// Wall time in milliseconds since 1970.
    var connectedAt: Int64 = 0
    var version = ProtocolVersion.resp2
    var name: [UInt8] = []
    var library: [UInt8] = []
    var libraryVersion: [UInt8] = []
    var silence = 0
    /// MULTI: the queued commands as RESP arrays; nil outside.
    var transaction: Queue?
    var watchedKeys: [WatchedKey] = []
    /// The metadata names of the named handlers that it has claimed.
    var handlers: [[UInt8]] = []
    var subscriptions: [Subscription] = []
    var lastWatch = 0
    var watches: [WatchRecord] = []
    var tracking: TrackingRecord?
    /// The number of the holder of its keys with LIFETIME connection; nil if it has none.
    var holder: Int64?
    /// Whether keys may live as long as its process.
    var isOfWatchedProcess = false
    /// Input that was received and not executed, and output that the client has not read.
    var input: [UInt8] = []
    var output: [UInt8] = []

    struct Queue {
        var isRefused = false
        var frames: [UInt8] = []
    }

    struct WatchedKey {
        var key: [UInt8]
        /// 0: it was absent; -1: it was absent and has changed since.
        var revision: Int64
    }

    struct Subscription {
        var kind: Channel.Kind
        var name: [UInt8]
    }
}

// The fields in the order of the format: a change of it needs another ``HandoverRecord/version``.
extension SessionRecord {
    func write(to writer: inout RecordWriter) {
        writer.write(Int64(number))
        writer.write(connectedAt)
        writer.write(Int64(version.rawValue))
        for text in [name, library, libraryVersion] { writer.write(text: text) }
        writer.write(Int64(silence))
        writer.write(optional: transaction) { writer, queue in
            writer.write(queue.isRefused)
            writer.write(text: queue.frames)
        }
        writer.write(list: watchedKeys) { writer, watched in
            writer.write(text: watched.key)
            writer.write(watched.revision)
        }
        writer.write(list: handlers) { $0.write(text: $1) }
        writer.write(list: subscriptions) { writer, subscription in
            writer.write(subscription.kind.number)
            writer.write(text: subscription.name)
        }
        writer.write(Int64(lastWatch))
        writer.write(list: watches) { $1.write(to: &$0) }
        writer.write(optional: tracking) { $1.write(to: &$0) }
        writer.write(optional: holder) { $0.write($1) }
        writer.write(isOfWatchedProcess)
        writer.write(text: input)
        writer.write(text: output)
    }

    init(_ reader: inout RecordReader) throws(DamagedRecord) {
        number = try reader.number(in: 1...SessionRecord.lastNumber)
        connectedAt = try reader.number()
        let version = ProtocolVersion(rawValue: try reader.number(in: 2...3))
        guard let version else { throw DamagedRecord() }
        self.version = version
        name = try reader.text()
        library = try reader.text()
        libraryVersion = try reader.text()
        silence = try reader.number(in: 0...3)
        transaction = try reader.optional { (reader) throws(DamagedRecord) in
            Queue(isRefused: try reader.flag(), frames: try reader.text())
        }
        watchedKeys = try reader.list { (reader) throws(DamagedRecord) in
            WatchedKey(key: try reader.text(), revision: try reader.number())
        }
        handlers = try reader.list { (reader) throws(DamagedRecord) in try reader.text() }
        subscriptions = try reader.list { (reader) throws(DamagedRecord) in
            let kind = Channel.Kind(number: try reader.number())
            guard let kind else { throw DamagedRecord() }
            return Subscription(kind: kind, name: try reader.text())
        }
        lastWatch = try reader.number(in: 0...SessionRecord.lastNumber)
        watches = try reader.list { (reader) throws(DamagedRecord) in try WatchRecord(&reader) }
        tracking = try reader.optional { (reader) throws(DamagedRecord) in
            try TrackingRecord(&reader)
        }
        holder = try reader.optional { (reader) throws(DamagedRecord) in try reader.number() }
        isOfWatchedProcess = try reader.flag()
        input = try reader.text()
        output = try reader.text()
        guard reader.isAtEnd else { throw DamagedRecord() }
    }

    /// The numbers of connections have a bounded place in the tokens of epoll.
    static let lastNumber: Int64 = 1 << 35
}

extension Channel.Kind {
    fileprivate var number: Int64 {
        switch self {
        case .name: 0
        case .pattern: 1
        case .shard: 2
        }
    }

    fileprivate init?(number: Int64) {
        switch number {
        case 0: self = .name
        case 1: self = .pattern
        case 2: self = .shard
        default: return nil
        }
    }
}

extension Session.Silence {
    var number: Int {
        switch self {
        case .none: 0
        case .all: 1
        case .afterThis: 2
        case .once: 3
        }
    }

    /// Takes 0 to 3.
    init(number: Int) {
        switch number {
        case 1: self = .all
        case 2: self = .afterThis
        case 3: self = .once
        default: self = .none
        }
    }
}
