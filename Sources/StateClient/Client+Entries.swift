public import StateModel
import StateWire

extension Client {
    /// All that the daemon keeps of a key.
    public struct Entry: Hashable, Sendable {
        /// The value.
        public let value: [UInt8]
        /// The revision that last modified it.
        public let revision: Int64
        /// The revision that created it.
        public let created: Int64
        /// How many times it was set since.
        public let version: Int64
        /// Wall time of the last change in milliseconds since 1970.
        public let time: Int64
        /// The uid that created it.
        public let owner: UInt32
        /// Who changed it last: `uid:gid:pid:command:client`.
        public let writer: String
        /// Wall time in milliseconds at which it expires; nil for never.
        public let expires: Int64?
        /// How safe the value is: `synced` or `memory`.
        public let durability: String
        /// Whether nobody has set the key, and the value is what a rule says it is then; its revision is 0.
        public let isDefault: Bool
    }

    /// A key as a listing has it.
    public struct ListedEntry: Hashable, Sendable {
        /// The key.
        public let key: [UInt8]
        /// The value; nil where only keys were asked for.
        public let value: [UInt8]?
        /// The revision that last modified it; 0 where only keys were asked for.
        public let revision: Int64
        /// What else is told of it; nil where that was not asked for.
        public let details: Details?

        /// What a long listing tells beside the value.
        public struct Details: Hashable, Sendable {
            /// The uid that created it.
            public let owner: UInt32
            /// Where it lives: `sqlite`, `file` or `memory`.
            public let backing: String
            /// The one type that its schema allows, in the words of JSON Schema; empty where there is none, or several.
            public let schemaType: String
        }

        init(key: [UInt8], value: [UInt8]?, revision: Int64, details: Details? = nil) {
            (self.key, self.value, self.revision) = (key, value, revision)
            self.details = details
        }
    }

    /// One value of the daemon's status.
    public struct StatusField: Hashable, Sendable {
        /// Its name.
        public let name: String
        /// Its text, also where it is a number.
        public let text: String
        /// Its number, where it is one.
        public let number: Int64?
    }

    /// All that the daemon keeps of a key; nil where it is absent.
    ///
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    public func entry(for key: Key) throws(StateError) -> Entry? {
        try entry(for: key, at: nil)
    }

    /// The entry of which a reply to STATE.GET tells.
    static func entry(_ reply: Reply) throws(StateError) -> Entry? {
        if case .null = reply { return nil }
        let fields = Fields(reply, of: "STATE.GET")
        return Entry(
            value: try fields.bytes("value"),
            revision: try fields.number("revision"),
            created: try fields.number("created"),
            version: try fields.number("version"),
            time: try fields.number("time"),
            owner: UInt32(truncatingIfNeeded: try fields.number("owner")),
            writer: reply["by"]?.textValue ?? "",
            expires: reply["expires"]?.integerValue,
            durability: reply["durability"]?.textValue ?? "",
            isDefault: reply["default"] != nil
        )
    }

    /// How many keys the pattern means, or meant at a revision.
    ///
    /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
    public func count(of pattern: Pattern, at revision: Int64? = nil) throws(StateError) -> Int64 {
        var arguments = [Array("STATE.LIST".utf8), pattern.argument, Array("COUNT".utf8)]
        if let revision { arguments.add("AT", String(revision)) }
        let reply = try call(arguments)
        guard let count = reply.integerValue else { throw Self.unexpected("STATE.LIST") }
        return count
    }

    /// What the pattern means, in key order, in pages.
    ///
    /// All pages are the state of one moment: a listing of more than one begins again at the revision that is current when that
    /// shows. Where nothing is kept of what was (`--memory`), a page is of one moment, and what changes while the next is
    /// asked for may or may not be in it.
    ///
    /// - Parameters:
    ///   - pattern: What to list.
    ///   - keysOnly: Leaves values and revisions out.
    ///   - isLong: Tells where each entry lives, of which type it is and who owns it.
    ///   - revision: Which moment; nil for now.
    /// - Returns: A listing; nothing is asked for before its first page.
    public func pages(
        of pattern: Pattern,
        keysOnly: Bool = false,
        isLong: Bool = false,
        at revision: Int64? = nil
    ) -> Pages {
        let form = keysOnly ? "KEYS" : isLong ? "LONG" : nil
        return Pages(client: self, pattern: pattern, form: form, revision: revision)
    }

    /// What the daemon says of itself, in its order.
    ///
    /// - Throws: ``StateError/Code/unreachable``.
    public func status() throws(StateError) -> [StatusField] {
        let reply = try call([Array("STATE.STATUS".utf8)], .needsRESP3)
        guard let pairs = reply.pairs else { throw Self.unexpected("STATE.STATUS") }
        return pairs.map { pair in
            let number = pair.value.integerValue
            return StatusField(
                name: pair.key.textValue ?? "",
                text: pair.value.textValue ?? number.map(String.init) ?? "",
                number: number
            )
        }
    }

    /// What STATE.COMPACT has answered.
    public struct Compaction: Sendable {
        /// From this revision on the history is whole.
        public let compacted: Int64
        /// Bytes that were given back to the file system; nil where that was not asked for.
        public let freedByteCount: Int64?
    }

    /// Takes superseded changes out of the history, and returns when that is done.
    ///
    /// - Parameters:
    ///   - revision: History is wanted from here on only; nil: from where the daemon's retention says.
    ///   - shrinks: Whether free pages are given back to the file system: writes wait meanwhile.
    /// - Returns: From where the history is whole, and what was given back.
    /// - Throws: ``StateError/Code/err`` for a revision above the current one; ``StateError/Code/noSpace`` where shrinking has
    ///   no room for its copy, after the history was compacted.
    public func compact(to revision: Int64?, shrinks: Bool) throws(StateError) -> Compaction {
        let words = (revision.map { ["TO", String($0)] } ?? []) + (shrinks ? ["SHRINK"] : [])
        let reply = try ask("STATE.COMPACT", [], .waits, words: words)
        return Compaction(
            compacted: try reply.number("compacted"),
            freedByteCount: reply["freed"]?.integerValue
        )
    }

    /// A listing under way.
    public struct Pages {
        private let client: Client
        private let pattern: Pattern
        /// The word for what is told of each; nil for key, value and revision.
        private let form: String?
        /// The moment that is listed; nil while it is not settled.
        private var revision: Int64?
        private var last: [UInt8]?
        private var isDone = false
        /// Halved where a page of large values is more than the daemon puts into one reply.
        private var limit = 1_000

        init(client: Client, pattern: Pattern, form: String?, revision: Int64?) {
            self.client = client
            self.pattern = pattern
            self.form = form
            self.revision = revision
        }

        /// The next page, never empty; nil after the last.
        ///
        /// - Throws: what the daemon refused with, or ``StateError/Code/unreachable``.
        public mutating func next() throws(StateError) -> [ListedEntry]? {
            guard !isDone else { return nil }
            var rows = try nextRows()
            if last == nil, revision == nil, rows.count >= limit, try settleRevision() {
                rows = try nextRows()
            }
            isDone = rows.count < limit
            guard !rows.isEmpty else { return nil }
            let page = try rows.map(entry)
            last = page.last?.key
            return page
        }

        /// There is a second page: chooses the moment that all of them are of.
        ///
        /// - Returns: False where the daemon keeps nothing of what was.
        private mutating func settleRevision() throws(StateError) -> Bool {
            let fields = try client.status()
            guard fields.contains(where: { $0.name == "backing" && $0.text != "memory" }) else {
                return false
            }
            revision = fields.first { $0.name == "revision" }?.number
            return revision != nil
        }

        private mutating func nextRows() throws(StateError) -> [Reply] {
            while true {
                var arguments = [Array("STATE.LIST".utf8), pattern.argument]
                if let last { arguments += [Array("AFTER".utf8), last] }
                arguments.add("LIMIT", String(limit))
                if let form { arguments.add(form) }
                if let revision { arguments.add("AT", String(revision)) }
                do throws(StateError) {
                    guard let rows = try client.call(arguments).elements else {
                        throw Client.unexpected("STATE.LIST")
                    }
                    return rows
                } catch {
                    guard error.code == .tooBig, limit > 1 else { throw error }
                    limit = max(1, limit / 8)
                }
            }
        }

        private func entry(_ row: Reply) throws(StateError) -> ListedEntry {
            let parts = row.elements ?? [row]
            guard let key = parts.first?.byteValue else { throw Client.unexpected("STATE.LIST") }
            guard form != "KEYS" else { return ListedEntry(key: key, value: nil, revision: 0) }
            guard parts.count >= 3, let value = parts[1].byteValue,
                let revision = parts[2].integerValue
            else { throw Client.unexpected("STATE.LIST") }
            return ListedEntry(
                key: key,
                value: value,
                revision: revision,
                details: form == nil ? nil : try Self.details(parts)
            )
        }

        private static func details(_ parts: [Reply]) throws(StateError) -> ListedEntry.Details {
            guard parts.count >= 10, let owner = parts[6].integerValue,
                let backing = parts[8].textValue, let type = parts[9].textValue
            else { throw Client.unexpected("STATE.LIST") }
            return ListedEntry.Details(
                owner: UInt32(truncatingIfNeeded: owner),
                backing: backing,
                schemaType: type
            )
        }
    }
}
