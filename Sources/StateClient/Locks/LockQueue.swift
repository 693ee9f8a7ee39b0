package import StateModel

/// The contenders for one lock, in the order in which they arrived: the first holds it.
///
/// A lock is nothing but keys, so any client can take part. Each contender sets a key below
/// `locks/NAME/` that lives as long as its process; the value says `exclusive` or `shared`. The
/// revision that created the key is its place in the queue, and the fencing token of the lock: later
/// holders have larger ones. A contender has the lock once no key before its own excludes it, and
/// until then waits for the end of the last one that does, so that a release wakes one contender.
///
/// ```
/// locks/backup/9f3c…   exclusive   created 12   holds the lock, token 12
/// locks/backup/04aa…   shared      created 15   waits for 9f3c…
/// locks/backup/e1b7…   shared      created 17   waits for 9f3c…, then shares it with 04aa…
/// locks/backup/7712…   exclusive   created 18   waits for e1b7…
/// ```
///
/// A lock in the daemon was rejected: it would need a queue beside the keys that survives a crash,
/// and verbs for what lists, watches and rules do for keys.
package struct LockQueue {
    /// One who has the lock or waits for it.
    package struct Contender: Sendable {
        package let key: [UInt8]
        package let isShared: Bool
        /// The revision that created the key: the fencing token.
        package let token: Int64
        /// Wall time in milliseconds since 1970.
        package let time: Int64
        /// Who set the key.
        package let cause: Cause

        package init(
            key: [UInt8],
            value: [UInt8],
            created: Int64,
            time: Int64,
            cause: Cause
        ) {
            (self.key, self.time, self.cause) = (key, time, cause)
            token = created
            isShared = value == LockQueue.value(isShared: true)
        }
    }

    /// In the order of their tokens.
    package let contenders: [Contender]

    /// - Parameter contenders: Those of one lock, in any order.
    package init(_ contenders: [Contender]) {
        self.contenders = contenders.sorted { $0.token < $1.token }
    }

    /// The last contender before `key` that keeps it from having the lock; nil if it has it.
    package func obstacle(for key: [UInt8]) -> Contender? {
        guard let place = contenders.firstIndex(where: { $0.key == key }) else { return nil }
        let isShared = contenders[place].isShared
        return contenders[..<place].last { !isShared || !$0.isShared }
    }

    /// The contender with a key; nil if it is not in the queue.
    package subscript(key: [UInt8]) -> Contender? { contenders.first { $0.key == key } }

    // MARK: Keys

    private static let root = "locks/"

    /// The prefix of the keys of a lock, or of all.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if the name cannot be a part of a key.
    package static func prefix(of name: String? = nil) throws(StateError) -> Pattern {
        guard let name else { return try Pattern(literal: Array(root.utf8)) }
        let prefix = root + name + "/"
        // Room for the last part of a key.
        _ = try Key(bytes: Array((prefix + String(repeating: "0", count: 16)).utf8))
        return try Pattern(literal: Array(prefix.utf8))
    }

    /// A key for a new contender.
    package static func makeKey(of name: String) throws(StateError) -> Key {
        let digits = String(UInt64.random(in: 1...(.max)), radix: 16)
        let padding = String(repeating: "0", count: 16 - digits.utf8.count)
        return try Key(bytes: Array((root + name + "/" + padding + digits).utf8))
    }

    /// The value of a contender's key.
    package static func value(isShared: Bool) -> [UInt8] {
        Array((isShared ? "shared" : "exclusive").utf8)
    }

    /// The name of the lock of a contender's key.
    package static func name(of key: [UInt8]) -> [UInt8] {
        let end = key.lastIndex(of: UInt8(ascii: "/")) ?? key.endIndex
        return Array(key[..<end].dropFirst(root.utf8.count))
    }

    /// What distinguishes a contender's key from the others of its lock: the last part.
    package static func identifier(of key: [UInt8]) -> [UInt8] {
        Array(key.split(separator: UInt8(ascii: "/")).last ?? [])
    }
}

extension Client {
    /// The contenders for a lock, or for all locks if there is no name, as they are at one moment.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    package func contenders(for name: String? = nil) throws(StateError) -> [LockQueue.Contender] {
        let prefix = try LockQueue.prefix(of: name)
        let rows = try ask("STATE.LIST", [prefix.argument], words: ["LONG"]).rows()
        return try rows.map { row throws(StateError) in
            LockQueue.Contender(
                key: try row.bytes(0),
                value: try row.bytes(1),
                created: try row.number(3),
                time: try row.number(5),
                cause: Cause(try row.text(7)) ?? .unknown
            )
        }
        .filter { name == nil || LockQueue.name(of: $0.key) == Array((name ?? "").utf8) }
    }
}
