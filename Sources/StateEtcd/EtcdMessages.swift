/// The messages of etcd that a mirror needs, with the numbers of their fields.
///
/// https://github.com/etcd-io/etcd/blob/v3.4.23/etcdserver/etcdserverpb/rpc.proto
package enum EtcdMessages {
    /// A `RangeRequest`.
    static func range(
        _ key: [UInt8],
        end: [UInt8] = [],
        limit: Int64 = 0,
        revision: Int64 = 0,
        changedAt changed: Int64 = 0
    ) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.write(1, key)
        writer.write(2, end)
        writer.write(3, limit)
        writer.write(4, revision)
        writer.write(10, changed)
        writer.write(11, changed)
        return writer.bytes
    }

    /// A `RangeRequest` for the key that was set last and the number of keys, or at a revision for
    /// the number alone.
    static func count(_ key: [UInt8], end: [UInt8], revision: Int64 = 0) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.write(1, key)
        writer.write(2, end)
        writer.write(4, revision)
        if revision == 0 {
            let (descending, byChange): (Int64, Int64) = (2, 3)
            writer.write(3, 1 as Int64)
            writer.write(5, descending)
            writer.write(6, byChange)
        }
        // keys_only, or count_only
        writer.write(revision == 0 ? 8 : 9, true)
        return writer.bytes
    }

    /// A `PutRequest`.
    package static func put(_ key: [UInt8], _ value: [UInt8], lease: Int64 = 0) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.write(1, key)
        writer.write(2, value)
        writer.write(3, lease)
        return writer.bytes
    }

    /// A `WatchRequest` that creates a watch.
    ///
    /// With `fragment`, without `prev_kv`: with it, a delete of 10,000 keys came after 10 s.
    static func watch(_ key: [UInt8], end: [UInt8], from revision: Int64) -> [UInt8] {
        var create = ProtobufWriter()
        create.write(1, key)
        create.write(2, end)
        create.write(3, revision)
        // What is behind comes in messages of some MiB, not in one.
        create.write(8, true)
        var writer = ProtobufWriter()
        writer.writeMessage(1, create.bytes)
        return writer.bytes
    }

    /// The first key after all that begin with a prefix, as the end of a range; `\0` means that
    /// no key does.
    static func end(of prefix: [UInt8]) -> [UInt8] {
        var end = prefix
        while let last = end.popLast() {
            if last < 0xFF { return end + [last + 1] }
        }
        return [0]
    }
}

/// A `ResponseHeader`.
package struct EtcdHeader {
    var clusterID: UInt64 = 0
    package var revision: Int64 = 0

    init() {}

    init(_ bytes: ArraySlice<UInt8>) throws(MalformedMessage) {
        var reader = ProtobufReader(bytes)
        while let (field, value) = try reader.next() {
            switch field {
            case 1: clusterID = UInt64(bitPattern: value.number)
            case 3: revision = try value.revision
            default: break
            }
        }
    }
}

/// A `KeyValue`.
package struct EtcdEntry {
    package var key: [UInt8] = []
    var modRevision: Int64 = 0
    /// How often the key was set since it was created.
    var version: Int64 = 0
    package var value: [UInt8] = []
    var lease: Int64 = 0

    init() {}

    init(_ bytes: ArraySlice<UInt8>) throws(MalformedMessage) {
        var reader = ProtobufReader(bytes)
        while let (field, value) = try reader.next() {
            switch field {
            case 1: key = Array(value.bytes)
            case 3: modRevision = try value.revision
            case 4: version = try value.revision
            case 5: self.value = Array(value.bytes)
            case 6: lease = value.number
            default: break
            }
        }
    }
}

/// A `RangeResponse`.
package struct EtcdRange {
    package var header = EtcdHeader()
    var entries: [EtcdEntry] = []
    var hasMore = false
    /// How many keys there are, also of those that were not asked for.
    var count: Int64 = 0

    init(_ bytes: ArraySlice<UInt8>) throws(MalformedMessage) {
        var reader = ProtobufReader(bytes)
        while let (field, value) = try reader.next() {
            switch field {
            case 4: count = try value.revision
            case 1: header = try EtcdHeader(value.bytes)
            case 2: entries.append(try EtcdEntry(value.bytes))
            case 3: hasMore = value.number != 0
            default: break
            }
        }
    }
}

/// A `WatchResponse`.
struct EtcdWatchResponse {
    var header = EtcdHeader()
    var isCreated = false
    var isCanceled = false
    /// Not 0 if the watch was cancelled because the history before it was compacted.
    var compactRevision: Int64 = 0
    var cancelReason = ""
    /// Whether the next message has more of the same.
    var isFragment = false
    var events: [EtcdEvent] = []

    init(_ bytes: ArraySlice<UInt8>) throws(MalformedMessage) {
        var reader = ProtobufReader(bytes)
        while let (field, value) = try reader.next() {
            switch field {
            case 1: header = try EtcdHeader(value.bytes)
            case 3: isCreated = value.number != 0
            case 4: isCanceled = value.number != 0
            case 5: compactRevision = try value.revision
            case 6: cancelReason = String(decoding: value.bytes, as: UTF8.self)
            case 7: isFragment = value.number != 0
            case 11: events.append(try EtcdEvent(value.bytes))
            default: break
            }
        }
    }
}

/// An `Event`.
package struct EtcdEvent {
    var isDelete = false
    package var entry = EtcdEntry()

    init(_ bytes: ArraySlice<UInt8>) throws(MalformedMessage) {
        var reader = ProtobufReader(bytes)
        while let (field, value) = try reader.next() {
            switch field {
            case 1: isDelete = value.number != 0
            case 2: entry = try EtcdEntry(value.bytes)
            default: break
            }
        }
    }
}
