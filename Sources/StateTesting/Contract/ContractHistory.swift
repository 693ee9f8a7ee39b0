import StateEngine

/// A random history as a keyspace would write it, and the state that it leaves.
struct ContractHistory {
    typealias Change = BuiltBatch.Change

    /// All changes so far, in order.
    private(set) var changes: [Change]
    /// The last change of each key.
    private var latest: [[UInt8]: Change] = [:]
    private var revision: Int64
    private var random: ContractRandom

    /// Continues after the changes of a store.
    init(_ changes: [Change], revision: Int64, seed: UInt64) {
        self.changes = changes
        self.revision = max(revision, changes.last?.revision ?? 0)
        random = ContractRandom(seed: seed &+ UInt64(bitPattern: self.revision))
        for change in changes { latest[change.key] = change }
    }

    /// The present values.
    var values: [[UInt8]: [UInt8]] { latest.compactMapValues(\.value) }

    var lastRevision: Int64 { revision }

    /// The next transaction: each key once, a nil value for a delete.
    ///
    /// Deletes of absent keys are omitted.
    mutating func transaction(_ writes: [(key: [UInt8], value: [UInt8]?)]) -> [Change] {
        // Revision numbers may be skipped.
        let revision = self.revision + (random.chance(20) ? 3 : 1)
        let cause = random.chance(10) ? [] : Array(randomCause().utf8)
        let time = Int64(random.number(below: 1 << 42))
        var made: [Change] = []
        for (key, value) in writes {
            let previous = latest[key]
            let current = previous.flatMap { $0.value == nil ? nil : $0 }
            guard current != nil || value != nil else { continue }
            let change = Change(
                revision: revision,
                ordinal: Int32(made.count),
                key: key,
                value: value,
                created: current?.created ?? revision,
                owner: current?.owner ?? UInt32.random(in: 0...UInt32.max, using: &random),
                version: value == nil ? 0 : (current?.version ?? 0) + 1,
                time: time,
                cause: cause,
                previousRevision: previous?.revision ?? 0,
                previousOrdinal: previous?.ordinal ?? 0
            )
            latest[key] = change
            made.append(change)
        }
        if !made.isEmpty { self.revision = revision }
        changes += made
        return made
    }

    /// The next transaction, of at most `count` keys.
    mutating func randomTransaction(_ count: Int) -> [Change] {
        var writes: [[UInt8]: [UInt8]?] = [:]
        for _ in 0..<count {
            let size = random.chance(3) ? 20_000 : 100
            let value = random.bytes(random.number(below: size))
            writes[ContractKeys.numbered(random.number(below: 200))] =
                random.chance(25) ? nil : value
        }
        return transaction(writes.map { ($0.key, $0.value) })
    }

    private mutating func randomCause() -> String {
        let pid = Int32(random.number(below: 1 << 22))
        let client = random.chance(50) ? "contract" : ""
        return Cause(uid: 1_000, gid: 100, pid: pid, command: "a b%:c", client: client).description
    }
}

/// Keys that every kind of storage accepts: no segment is longer than a file name, and no key is
/// also a prefix of others.
enum ContractKeys {
    private static let ends = ["", " x", "%", "ü", "🗝", "#?", "A", "a", ".", "\\", "%2F", "'"]

    /// One of many keys, with awkward characters.
    static func numbered(_ number: Int) -> [UInt8] {
        Array("contract/.\(number)\(ends[number % ends.count])".utf8)
    }

    static let longest = longest(Array("contract/long/".utf8))

    /// The longest possible key with a prefix.
    static func longest(_ prefix: [UInt8]) -> [UInt8] {
        prefix
            + (prefix.count..<Key.maximumByteCount).map {
                $0 % 200 == 199 ? UInt8(ascii: "/") : UInt8(ascii: "k")
            }
    }
}

extension BuiltBatch.Change {
    /// The change in a message.
    var shown: String {
        let name = key.withUnsafeBytes { StateError.quoted($0) }
        let content = value.map { "\($0.count) bytes" } ?? "a delete"
        return "\(revision).\(ordinal) \(name) \(content), created \(created) by \(owner), "
            + "version \(version), time \(time), cause '\(String(decoding: cause, as: UTF8.self))', "
            + "after \(previousRevision).\(previousOrdinal)"
    }
}
