public import StateModel
import StateWire

extension Client {
    /// A step of a transaction.
    public enum Step: Hashable, Sendable {
        case set(Key, [UInt8])
        /// Deletes a key; an absent one is no error.
        case delete(Key)
        /// Refuses the transaction if the key was not last modified at the revision; 0: is absent.
        case check(Key, revision: Int64)
    }

    /// Makes all steps one commit, or none of them.
    ///
    /// - Returns: The commit, on stable storage; its count has set keys and deleted ones.
    /// - Throws: ``StateError/Code/conflict``, naming the key and its revision, if a check fails:
    ///   nothing has changed. Else as ``set(_:for:if:durability:expiresAfter:livingAs:)``.
    @discardableResult
    public func apply(_ steps: [Step]) throws(StateError) -> Commit {
        var arguments = [Array("STATE.APPLY".utf8), Array(String(steps.count).utf8)]
        for step in steps {
            switch step {
            case .set(let key, let value): arguments += [Array("SET".utf8), key.bytes, value]
            case .delete(let key): arguments += [Array("DELETE".utf8), key.bytes]
            case .check(let key, let revision):
                arguments += [Array("CHECK".utf8), key.bytes, Array(String(revision).utf8)]
            }
        }
        let reply = try call(arguments, [.write, .needsRESP3])
        return try Self.commit(Fields(reply, of: "STATE.APPLY"), count: steps.count)
    }

    /// The values of several keys at one moment; nil for each that is absent.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func values(for keys: [Key]) throws(StateError) -> [[UInt8]?] {
        guard !keys.isEmpty else { return [] }
        let reply = try call([Array("MGET".utf8)] + keys.map(\.bytes))
        guard let values = reply.elements, values.count == keys.count else {
            throw Self.unexpected("MGET")
        }
        return values.map(\.byteValue)
    }

    /// Adds to a number; an absent key counts as 0.
    ///
    /// - Returns: The sum.
    /// - Throws: ``StateError/Code/err`` if the value is no whole number of 64 bits, or the sum is
    ///   none; nothing has changed. Else as
    ///   ``set(_:for:if:durability:expiresAfter:livingAs:)``.
    @discardableResult
    public func add(_ number: Int64, to key: Key) throws(StateError) -> Int64 {
        let reply = try call(
            [Array("INCRBY".utf8), key.bytes, Array(String(number).utf8)],
            .write
        )
        guard let sum = reply.integerValue else { throw Self.unexpected("INCRBY") }
        return sum
    }

    /// Returns once the daemon answers.
    ///
    /// - Throws: ``StateError/Code/unreachable``.
    public func ping() throws(StateError) { _ = try call([Array("PING".utf8)]) }

    /// The names of the next level below a prefix, in key order, in pages: keys, and prefixes that
    /// end in `/`.
    ///
    /// - Parameter prefix: Must be a prefix.
    /// - Returns: A listing; it sends nothing before its first page is requested.
    public func children(of prefix: Pattern) -> Children { Children(client: self, prefix: prefix) }

    /// A listing of names in progress.
    public struct Children {
        private let client: Client
        private let prefix: Pattern
        private var last: [UInt8]?
        private var isDone = false
        private static let limit = 1_000

        init(client: Client, prefix: Pattern) { (self.client, self.prefix) = (client, prefix) }

        /// The next page, never empty; nil after the last.
        ///
        /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
        public mutating func next() throws(StateError) -> [[UInt8]]? {
            guard !isDone else { return nil }
            var arguments = [Array("STATE.LIST".utf8), prefix.argument]
            if let last { arguments += [Array("AFTER".utf8), last] }
            arguments.add("LIMIT", String(Children.limit), "CHILDREN")
            let reply = Fields(try client.call(arguments), of: "STATE.LIST")
            let names = try reply.rows().map { row throws(StateError) in try row.bytes(0) }
            isDone = names.count < Children.limit
            last = names.last
            return names.isEmpty ? nil : names
        }
    }
}
