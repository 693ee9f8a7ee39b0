import StateEngine

/// A radix tree that owns its records, with values that are numbers.
final class RecordTree {
    private var tree = RadixTree()

    init(_ keys: [String] = []) { for key in keys { insert(key) } }

    deinit {
        var records: [Record] = []
        tree.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { record in
            records.append(record)
            return true
        }
        for record in records { record.deallocate() }
    }

    var count: Int { tree.count }

    func faults() -> [String] { tree.checkInvariants() }

    func insert(_ key: [UInt8], value: UInt64 = 0) { tree.insert(record(key, value)) }

    func insert(_ key: String) { insert(Array(key.utf8)) }

    func replace(_ key: [UInt8], value: UInt64) {
        tree.replace(with: record(key, value)).deallocate()
    }

    func remove(_ key: [UInt8]) {
        key.withUnsafeBytes { key in
            let record = tree.record(for: key)
            tree.remove(key)
            record?.deallocate()
        }
    }

    func remove(_ key: String) { remove(Array(key.utf8)) }

    func value(_ key: [UInt8]) -> UInt64? {
        key.withUnsafeBytes { tree.record(for: $0) }?.value?.loadUnaligned(as: UInt64.self)
    }

    func value(_ key: String) -> UInt64? { value(Array(key.utf8)) }

    func byteKeys(
        prefix: [UInt8] = [],
        after bound: [UInt8]? = nil,
        limit: Int = .max
    ) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        func collect(_ bound: Bytes?) {
            prefix.withUnsafeBytes { prefix in
                tree.forEach(prefix: prefix, after: bound) { record in
                    keys.append(Array(record.key))
                    return keys.count < limit
                }
            }
        }
        if let bound { bound.withUnsafeBytes { collect($0) } } else { collect(nil) }
        return keys
    }

    func keys(prefix: String = "", after bound: String? = nil, limit: Int = .max) -> [String] {
        byteKeys(prefix: Array(prefix.utf8), after: bound.map { Array($0.utf8) }, limit: limit)
            .map { String(decoding: $0, as: UTF8.self) }
    }

    private func record(_ key: [UInt8], _ value: UInt64) -> Record {
        let fields = Record.Fields(
            revision: 1,
            created: 1,
            version: 1,
            time: 0,
            ordinal: 0,
            owner: 0,
            cause: 0
        )
        return key.withUnsafeBytes { key in
            withUnsafeBytes(of: value) { Record.make(fields, key: key, value: $0) }
        }
    }
}
