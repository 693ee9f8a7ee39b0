public import StateModel
import StateWire

extension Client {
    /// A condition that the entry must meet for a write to succeed.
    public enum Condition: Hashable, Sendable {
        /// The key is absent.
        case absent
        /// The key is present.
        case present
        /// The entry was last modified at this revision; 0 means absent.
        case revision(Int64)
        /// The key has this value.
        case value([UInt8])
    }

    /// The commit of a write.
    public struct Commit: Hashable, Sendable {
        /// Its revision; if nothing changed, the current one.
        public let revision: Int64
        /// How many keys it changed.
        public let count: Int
        /// How safe it was when the daemon replied: `synced` or `memory`; empty if the reply has
        /// none.
        public let durability: String
    }

    /// The value of a key; nil if it is absent.
    ///
    /// One request in RESP2; nothing precedes it, even on a new connection.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
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
    ///   - key: The key.
    ///   - condition: The condition that the entry must meet.
    ///   - durability: How safe the write must be before the daemon replies; nil: as the key's rule
    ///     says, which is on stable storage if there is none. Watchers get the change once it is
    ///     on stable storage.
    ///   - time: How long the value lives, above 0; nil: as the key's rule says, which is without
    ///     end if there is none.
    ///   - lifetime: Whose end deletes the key; nil: as its rule says, which is nobody's if there is
    ///     none. Not together with `time`.
    /// - Returns: The commit, durable to the level that it names.
    /// - Throws: ``StateError/Code/conflict``, naming the current revision, if the condition is not
    ///   met: nothing has changed. ``StateError/Code/outcomeUnknown`` if the connection was lost:
    ///   the write may have been made. Any other error of the daemon.
    @discardableResult
    public func set(
        _ value: [UInt8],
        for key: Key,
        if condition: Condition? = nil,
        durability: Durability? = nil,
        expiresAfter time: Duration? = nil,
        livingAs lifetime: StateModel.Lifetime? = nil
    ) throws(StateError) -> Commit {
        var operands = [key.bytes, value]
        switch condition {
        case nil: break
        case .absent: operands.add("NX")
        case .present: operands.add("XX")
        case .revision(let revision): operands.add("IFREV", String(revision))
        case .value(let value): operands += [Array("IFVAL".utf8), value]
        }
        if let durability { operands.add("DURABILITY", durability.description) }
        if let time { operands.add("EXPIRES", Self.milliseconds(time)) }
        if let lifetime { operands.add("LIFETIME", lifetime.rawValue) }
        return try Self.commit(try ask("STATE.SET", operands, .write), count: 1)
    }

    /// Sets many values in one commit: all of them, or none.
    ///
    /// If a key occurs twice, the last value wins.
    ///
    /// - Parameters:
    ///   - values: The keys and values.
    ///   - time: How long the values live, above 0; nil: as the rules of the keys say.
    /// - Returns: The commit, on stable storage.
    /// - Throws: As ``set(_:for:if:durability:expiresAfter:livingAs:)``.
    @discardableResult
    public func set(
        _ values: [(key: Key, value: [UInt8])],
        expiresAfter time: Duration? = nil
    ) throws(StateError) -> Commit {
        let replies = try pipeline(count: 1, [.write, .needsRESP3]) { request in
            request.begin(argumentCount: 2 + (time == nil ? 3 : 5) * values.count)
            request.append(argument: "STATE.APPLY")
            request.append(argument: String(values.count))
            for (key, value) in values {
                request.append(argument: "SET")
                request.append(argument: key.bytes)
                request.append(argument: value)
                guard let time else { continue }
                request.append(argument: "EXPIRES")
                request.append(argument: Self.milliseconds(time))
            }
        }
        if case .error(let error) = replies[0] { throw error }
        return try Self.commit(Fields(replies[0], of: "STATE.APPLY"), count: values.count)
    }

    /// Deletes every key that matches one of the patterns, in one commit.
    ///
    /// - Parameters:
    ///   - patterns: At least one.
    ///   - isDryRun: Only counts the keys.
    /// - Returns: The commit and how many keys it deleted, which may be 0.
    /// - Throws: As ``set(_:for:if:durability:expiresAfter:livingAs:)``.
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

    /// The error for a reply of an unexpected form.
    static func unexpected(_ verb: String) -> StateError {
        StateError(.err, "the daemon's reply to \(verb) has an unexpected form")
    }
}

extension Pattern {
    /// The pattern as an argument: a word that would be read as an option is written with `\`.
    package var argument: [UInt8] {
        let word = String(decoding: bytes, as: UTF8.self).uppercased()
        return Self.optionWords.contains(word) ? [UInt8(ascii: "\\")] + bytes : bytes
    }

    private static var optionWords: [String] {
        [
            "AFTER", "AT", "BLOCK", "BY", "COUNT", "DRYRUN", "EPOCH", "FROM", "KEYS", "LATEST",
            "CHILDREN", "LIMIT", "PREVIOUS", "RESET", "SNAPSHOT",
        ]
    }
}
