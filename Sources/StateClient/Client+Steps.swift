public import StateModel
import StateWire

extension Client {
    /// A step of a transaction.
    public enum Step: Hashable, Sendable {
        /// Sets a key. Its value lives for the time, above 0; without one, as the key's rule says.
        case set(Key, [UInt8], expiresAfter: Duration? = nil)
        /// Deletes a key; an absent one is no error.
        case delete(Key)
        /// Refuses the transaction if the key was not last modified at the revision; 0: is absent.
        case check(Key, revision: Int64)
    }

    /// The most arguments of one request; a step of ``apply(_:isDryRun:)`` has up to 5.
    package static let argumentLimit = FrameParser.Limits().argumentCount

    /// Makes all steps one commit, or none of them.
    ///
    /// - Parameters:
    ///   - steps: The steps, in the order in which they are made.
    ///   - isDryRun: Only checks that they can be made, by conditions and rules; changes nothing.
    /// - Returns: The commit, on stable storage; its count has set keys and deleted ones.
    /// - Throws: ``StateError/Code/conflict``, naming the key and its revision, if a check fails:
    ///   nothing has changed. ``StateError/Code/tooBig`` if one request cannot hold the steps. Else
    ///   as ``set(_:for:if:durability:expiresAfter:livingAs:)``.
    @discardableResult
    public func apply(_ steps: [Step], isDryRun: Bool = false) throws(StateError) -> Commit {
        try apply(steps, isDryRun: isDryRun, keepsTimes: false)
    }

    /// The same; with `keepsTimes`, keys that are set live as long as they would have before.
    @discardableResult
    package func apply(
        _ steps: [Step],
        isDryRun: Bool,
        keepsTimes: Bool
    ) throws(StateError) -> Commit {
        var arguments: [[UInt8]] = []
        var count = 0
        var index = 0
        while index < steps.count {
            let next = index + 1 < steps.count ? steps[index + 1] : nil
            switch (steps[index], next) {
            // A condition of the next step: the number of steps is limited.
            case (.check(let key, let revision), .set(let other, let value, let time)?)
            where key == other:
                arguments.add("SET")
                arguments += [key.bytes, value]
                arguments.add("IFREV", String(revision))
                arguments.add(expiry: time, keepsTimes: keepsTimes)
                index += 1
            case (.check(let key, let revision), .delete(let other)?) where key == other:
                arguments += [Array("DELETE".utf8), key.bytes]
                arguments.add("IFREV", String(revision))
                index += 1
            case (.set(let key, let value, let time), _):
                arguments += [Array("SET".utf8), key.bytes, value]
                arguments.add(expiry: time, keepsTimes: keepsTimes)
            case (.delete(let key), _): arguments += [Array("DELETE".utf8), key.bytes]
            case (.check(let key, let revision), _):
                arguments += [Array("CHECK".utf8), key.bytes, Array(String(revision).utf8)]
            }
            (index, count) = (index + 1, count + 1)
        }
        arguments = [Array("STATE.APPLY".utf8), Array(String(count).utf8)] + arguments
        if isDryRun { arguments.add("DRYRUN") }
        guard arguments.count <= Self.argumentLimit else {
            let fitting = count * (Self.argumentLimit - 3) / (arguments.count - 2)
            throw StateError(
                .tooBig,
                "one commit cannot hold \(count) steps; the limit is about \(fitting) such steps, \(Self.argumentLimit) arguments"
            )
        }
        let reply = try call(arguments, isDryRun ? .needsRESP3 : [.write, .needsRESP3])
        return try Self.commit(Fields(reply, of: "STATE.APPLY"), count: count)
    }

    /// The entries of several keys, in their order, each at the moment at which it is read; nil for
    /// each that is absent and has no default.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func entries(for keys: [Key]) throws(StateError) -> [Entry?] {
        var entries: [Entry?] = []
        while entries.count < keys.count {
            let page = keys[entries.count...].prefix(1_000)
            let replies = try pipeline(count: page.count, .needsRESP3) { request in
                for key in page { request.append([Array("STATE.GET".utf8), key.bytes]) }
            }
            for reply in replies {
                if case .error(let error) = reply { throw error }
                entries.append(try Self.entry(reply))
            }
        }
        return entries
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
    /// - Throws: ``StateError/Code/invalidRequest`` if the value is no whole number of 64 bits, or
    ///   the sum is none; nothing has changed. Else as
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
    /// - Parameters:
    ///   - prefix: Must be a prefix.
    ///   - name: Only names after this one; nil for all.
    /// - Returns: A listing; it sends nothing before its first page is requested.
    public func children(of prefix: Pattern, after name: [UInt8]? = nil) -> Children {
        Children(client: self, prefix: prefix, after: name)
    }

    /// A listing of names in progress.
    public struct Children {
        private let client: Client
        private let prefix: Pattern
        private var last: [UInt8]?
        private var isDone = false
        private static let limit = 1_000

        init(client: Client, prefix: Pattern, after name: [UInt8]?) {
            (self.client, self.prefix, last) = (client, prefix, name)
        }

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

extension [[UInt8]] {
    fileprivate mutating func add(expiry time: Duration?, keepsTimes: Bool) {
        if let time {
            add("EXPIRES", Client.milliseconds(time))
        } else if keepsTimes {
            add("EXPIRES", "keep")
        }
    }
}
