/// A `TxnRequest`: what must hold, and what is done then.
///
/// https://github.com/etcd-io/etcd/blob/v3.4.23/etcdserver/etcdserverpb/rpc.proto
package struct EtcdTransaction {
    private var writer = ProtobufWriter()
    /// The times of the leases that it needs, in milliseconds since 1970.
    private(set) var deadlines: Set<Int64> = []

    package init() {}

    /// What of a key is compared, by the numbers of `CompareTarget` and of its field.
    private enum Target {
        static let version: (target: Int64, field: Int) = (0, 4)
        static let changed: (target: Int64, field: Int) = (2, 6)
        static let value: (target: Int64, field: Int) = (3, 7)
    }

    /// `CompareResult`.
    private enum Result: Int64 {
        case equal = 0
        case greater = 1
        case less = 2
    }

    package var bytes: [UInt8] { writer.bytes }

    // MARK: Conditions

    /// The key has this value.
    package mutating func require(_ key: [UInt8], has value: [UInt8]) {
        var compare = EtcdTransaction.compare(key, Target.value.target, .equal)
        compare.writeMessage(Target.value.field, value)
        writer.writeMessage(1, compare.bytes)
    }

    /// The key is absent.
    mutating func requireAbsent(_ key: [UInt8]) { require(key, Target.version, .equal, 0) }

    /// The key is there, and was not set after a revision.
    mutating func requirePresent(_ key: [UInt8], unchangedSince revision: Int64) {
        require(key, Target.version, .greater, 0)
        require(key, Target.changed, .less, revision + 1)
    }

    /// No key from one to another was set after a revision.
    mutating func requireUnchanged(from key: [UInt8], to end: [UInt8], since revision: Int64) {
        require(key, Target.changed, .less, revision + 1, end: end)
    }

    private mutating func require(
        _ key: [UInt8],
        _ target: (target: Int64, field: Int),
        _ result: Result,
        _ number: Int64,
        end: [UInt8] = []
    ) {
        var compare = EtcdTransaction.compare(key, target.target, result)
        // The field says which comparison it is: it is there also for 0.
        compare.writePresent(target.field, number)
        compare.write(64, end)
        writer.writeMessage(1, compare.bytes)
    }

    private static func compare(_ key: [UInt8], _ target: Int64, _ result: Result) -> ProtobufWriter
    {
        var compare = ProtobufWriter()
        compare.write(1, result.rawValue)
        compare.write(2, target)
        compare.write(3, key)
        return compare
    }

    // MARK: Operations

    package mutating func put(_ key: [UInt8], _ value: [UInt8]) {
        add(2, EtcdMessages.put(key, value))
    }

    /// Sets a key that ends by itself, in milliseconds since 1970; its lease must be there.
    mutating func put(_ key: [UInt8], _ value: [UInt8], until time: Int64) {
        deadlines.insert(time)
        add(2, EtcdMessages.put(key, value, lease: MirrorLease.number(of: time)))
    }

    /// Deletes a key, or all from one to another.
    mutating func delete(_ key: [UInt8], to end: [UInt8] = []) {
        var request = ProtobufWriter()
        request.write(1, key)
        request.write(2, end)
        add(3, request.bytes)
    }

    /// A transaction within this one: its conditions are compared before anything is done.
    mutating func add(_ inner: EtcdTransaction) {
        deadlines.formUnion(inner.deadlines)
        add(4, inner.bytes)
    }

    private mutating func add(_ kind: Int, _ request: [UInt8]) {
        var operation = ProtobufWriter()
        operation.writeMessage(kind, request)
        writer.writeMessage(2, operation.bytes)
    }

    /// Whether the conditions of a transaction held, as its `TxnResponse` says.
    package static func hasSucceeded(_ response: [UInt8]) throws(MalformedMessage) -> Bool {
        var reader = ProtobufReader(response[...])
        var hasSucceeded = false
        while let (field, value) = try reader.next() {
            if field == 2 { hasSucceeded = value.number != 0 }
        }
        return hasSucceeded
    }
}
