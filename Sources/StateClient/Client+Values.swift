public import StateModel
import StateWire

extension Client {
    /// What a value must be before it may be replaced.
    public enum Condition: Hashable, Sendable {
        /// The key is absent.
        case absent
        /// The key is present.
        case present
        /// The entry was last modified at this revision; 0 means absent.
        case revision(Int64)
        /// The value is this one.
        case value([UInt8])
    }

    /// A commit that a write made.
    public struct Commit: Hashable, Sendable {
        /// Its revision; where nothing changed, the one that was current.
        public let revision: Int64
        /// How many keys it changed.
        public let count: Int
        /// How safe it was when the daemon replied: `synced` or `memory`; empty where the reply does not say.
        public let durability: String
    }

    /// The value of a key; nil where it is absent.
    ///
    /// One request in RESP2: nothing precedes it, not even on a new connection.
    ///
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    /// - Complexity: O(*n*) in the bytes of the value.
    public func value(for key: Key) throws(StateError) -> [UInt8]? {
        let reply = try call([Array("GET".utf8), key.bytes])
        if case .null = reply { return nil }
        guard let value = reply.byteValue else { throw Self.unexpected("GET") }
        return value
    }

    /// Sets the value of a key.
    ///
    /// - Parameters:
    ///   - value: The bytes; empty is a value.
    ///   - key: Which key.
    ///   - condition: What must hold of it.
    ///   - durability: How safe it has to be before the daemon replies; others are told of it once it is on stable storage.
    /// - Returns: The commit, durable to the level that it names.
    /// - Throws: ``StateError/Code/conflict`` where the condition does not hold, naming the current revision;
    ///   ``StateError/Code/outcomeUnknown`` where the connection was lost; else what the daemon refused with.
    @discardableResult
    public func set(
        _ value: [UInt8],
        for key: Key,
        if condition: Condition? = nil,
        durability: Durability = .synced
    ) throws(StateError) -> Commit {
        var operands = [key.bytes, value]
        switch condition {
        case nil: break
        case .absent: operands.add("NX")
        case .present: operands.add("XX")
        case .revision(let revision): operands.add("IFREV", String(revision))
        case .value(let value): operands += [Array("IFVAL".utf8), value]
        }
        if durability != .synced { operands.add("DURABILITY", durability.description) }
        return try Self.commit(try ask("STATE.SET", operands, .write), count: 1)
    }

    /// Sets many values in one commit: all of them, or none.
    ///
    /// Where a key stands twice, the last value wins.
    ///
    /// - Throws: as ``set(_:for:if:durability:)``.
    @discardableResult
    public func set(_ values: [(key: Key, value: [UInt8])]) throws(StateError) -> Commit {
        let replies = try pipeline(count: 1, [.write, .needsRESP3]) { request in
            request.begin(argumentCount: 2 + 3 * values.count)
            request.append(argument: "STATE.APPLY")
            request.append(argument: String(values.count))
            for (key, value) in values {
                request.append(argument: "SET")
                request.append(argument: key.bytes)
                request.append(argument: value)
            }
        }
        if case .error(let error) = replies[0] { throw error }
        return try Self.commit(Fields(replies[0], of: "STATE.APPLY"), count: values.count)
    }

    /// Deletes every key that one of the patterns means, in one commit.
    ///
    /// - Parameters:
    ///   - patterns: At least one.
    ///   - isDryRun: Only counts them.
    /// - Returns: The commit and how many keys it deleted, which may be 0.
    /// - Throws: as ``set(_:for:if:durability:)``.
    @discardableResult
    public func delete(
        _ patterns: [Pattern],
        isDryRun: Bool = false
    ) throws(StateError) -> Commit {
        let operands = patterns.map(\.argument)
        guard !isDryRun else {
            return try Self.commit(try ask("STATE.DELETE", operands, words: ["DRYRUN"]), count: 0)
        }
        return try Self.commit(try ask("STATE.DELETE", operands, .write), count: 0)
    }

    static func commit(_ reply: Fields, count: Int) throws(StateError) -> Commit {
        Commit(
            revision: try reply.number("revision"),
            count: reply["count"]?.integerValue.map(Int.init) ?? count,
            durability: reply["durability"]?.textValue ?? ""
        )
    }

    /// The error for a reply that the verb does not have.
    static func unexpected(_ verb: String) -> StateError {
        StateError(.err, "the daemon's reply to \(verb) has another form than expected")
    }
}

extension Pattern {
    /// The pattern as an argument: a word that would read as an option is written with `\`.
    package var argument: [UInt8] {
        let word = String(decoding: bytes, as: UTF8.self).uppercased()
        return Self.optionWords.contains(word) ? [UInt8(ascii: "\\")] + bytes : bytes
    }

    private static var optionWords: [String] {
        [
            "AFTER", "AT", "BLOCK", "BY", "COUNT", "DRYRUN", "EPOCH", "FROM", "KEYS", "LATEST",
            "LIMIT", "PREVIOUS", "RESET", "SNAPSHOT",
        ]
    }
}
