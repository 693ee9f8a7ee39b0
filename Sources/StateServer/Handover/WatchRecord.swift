import StateEngine
import StateWire

/// A watch as the next process needs it to go on with it.
struct WatchRecord {
    var number: Int
    var options: Command.WatchOptions
    var patterns: [[UInt8]]
    var place: Place

    enum Place {
        /// Everything up to this revision was delivered.
        case after(Int64)
        /// It must begin with a gap.
        case gap
        /// It is receiving a snapshot; the keys up to `passed` were delivered, nil: none.
        case snapshot(passed: [UInt8]?)
    }

    func write(to writer: inout RecordWriter) {
        writer.write(Int64(number))
        writer.write(Int64(options.rawValue))
        writer.write(list: patterns) { $0.write(text: $1) }
        switch place {
        case .after(let revision):
            writer.write(0)
            writer.write(revision)
        case .gap: writer.write(1)
        case .snapshot(let passed):
            writer.write(2)
            writer.write(optional: passed) { $0.write(text: $1) }
        }
    }

    init(_ reader: inout RecordReader) throws(DamagedRecord) {
        number = try reader.number(in: 1...SessionRecord.lastNumber)
        options = Command.WatchOptions(rawValue: try reader.number(in: 0...15))
        patterns = try reader.list { (reader) throws(DamagedRecord) in try reader.text() }
        switch try reader.number() {
        case 0: place = .after(try reader.number())
        case 1: place = .gap
        case 2:
            place = .snapshot(
                passed: try reader.optional { (reader) throws(DamagedRecord) in
                    try reader.text()
                }
            )
        default: throw DamagedRecord()
        }
    }
}

extension WatchRecord {
    init(_ watch: ConnectionWatcher, _ core: KeyspaceCore) {
        number = watch.number
        options = watch.format.options
        patterns = watch.watcher.patterns.patterns.map(\.bytes)
        if case .snapshot(let passed) = watch.watcher.phase, watch.watcher.waiting == nil {
            place = .snapshot(passed: passed)
        } else {
            place = watch.watcher.deliveredThrough(in: core).map(Place.after) ?? .gap
        }
    }
}

/// CLIENT TRACKING of a connection as the next process needs it to go on with it.
struct TrackingRecord {
    var redirection: Int?
    var isBroken: Bool
    var isBroadcast: Bool
    var prefixes: [[UInt8]]
    var isOptional: Bool?
    var leavesOutOwn: Bool
    var caching: Bool?
    var queued: [[UInt8]]
    var keys: [Key]

    /// A key that the client may have copies of.
    struct Key {
        var key: [UInt8]
        /// The newest revisions at its first and at its last read.
        var (first, last): (Int64, Int64)
    }

    func write(to writer: inout RecordWriter) {
        writer.write(optional: redirection) { $0.write(Int64($1)) }
        writer.write(isBroken)
        writer.write(isBroadcast)
        writer.write(list: prefixes) { $0.write(text: $1) }
        writer.write(optional: isOptional) { $0.write($1) }
        writer.write(leavesOutOwn)
        writer.write(optional: caching) { $0.write($1) }
        writer.write(list: queued) { $0.write(text: $1) }
        writer.write(list: keys) { writer, key in
            writer.write(text: key.key)
            writer.write(key.first)
            writer.write(key.last)
        }
    }

    init(_ reader: inout RecordReader) throws(DamagedRecord) {
        redirection = try reader.optional { (reader) throws(DamagedRecord) in
            try reader.number(in: 1...SessionRecord.lastNumber)
        }
        isBroken = try reader.flag()
        isBroadcast = try reader.flag()
        prefixes = try reader.list { (reader) throws(DamagedRecord) in try reader.text() }
        isOptional = try reader.optional { (reader) throws(DamagedRecord) in try reader.flag() }
        leavesOutOwn = try reader.flag()
        caching = try reader.optional { (reader) throws(DamagedRecord) in try reader.flag() }
        queued = try reader.list { (reader) throws(DamagedRecord) in try reader.text() }
        keys = try reader.list { (reader) throws(DamagedRecord) in
            Key(key: try reader.text(), first: try reader.number(), last: try reader.number())
        }
    }
}

extension TrackingRecord {
    init(_ client: TrackedClient) {
        redirection = client.redirection
        (isBroken, isBroadcast) = (client.isBroken, client.isBroadcast)
        prefixes = client.prefixes
        (isOptional, leavesOutOwn) = (client.isOptional, client.leavesOutOwn)
        (caching, queued) = (client.caching, client.queued)
        keys = client.copies.all.map {
            Key(key: $0.key, first: $0.value.first, last: $0.value.last)
        }
    }
}
