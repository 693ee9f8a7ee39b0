public import StateModel
import StateWire

extension Client {
    /// An entry, with all that the daemon stores about it.
    public struct Entry: Hashable, Sendable {
        /// The value.
        public let value: [UInt8]
        /// The revision that last modified it.
        public let revision: Int64
        /// The revision that created it.
        public let created: Int64
        /// How many times it was set since it was created.
        public let version: Int64
        /// Wall time of the last change in milliseconds since 1970.
        public let time: Int64
        /// The uid that created it.
        public let owner: UInt32
        /// Who changed it last: `uid:gid:pid:command:client`.
        public let writer: String
        /// Wall time in milliseconds at which it expires; nil for never.
        public let expires: Int64?
        /// Whose end deletes it; nil if nobody's does.
        public let lifetime: StateModel.Lifetime?
        /// How safe the value is: `synced` or `memory`.
        public let durability: String
        /// Whether the key is absent and the value is the default that a rule gives it; the
        /// revision is then 0.
        public let isDefault: Bool
        /// Where the default is from, for people: a file of defaults, or a rule; empty for a value
        /// that was set.
        public let origin: String
        /// Whether the copy of a cluster that the key belongs to is current; nil for other keys.
        public let isCurrent: Bool?
        /// How long ago the copy is known to have been complete, in milliseconds; -1 if that was not
        /// seen since the daemon started, nil for other keys.
        public let age: Int64?
    }

    /// An entry in a listing.
    public struct ListedEntry: Hashable, Sendable {
        /// The key.
        public let key: [UInt8]
        /// The value; nil if only keys were requested.
        public let value: [UInt8]?
        /// The revision that last modified it; 0 if only keys were requested.
        public let revision: Int64
        /// Further facts; nil unless requested.
        public let details: Details?

        /// What a long listing adds to the value.
        public struct Details: Hashable, Sendable {
            /// The uid that created it.
            public let owner: UInt32
            /// Its storage: `sqlite`, `file` or `memory`.
            public let backing: String
            /// The type that its schema allows, as JSON Schema names it; empty if there is none, or
            /// more than one.
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
        /// Its value as text, also for a number.
        public let text: String
        /// Its value as a number, if it is one.
        public let number: Int64?
    }

    /// The entry of a key; nil if it is absent.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func entry(for key: Key) throws(StateError) -> Entry? {
        try entry(for: key, at: nil)
    }

    /// The entry in a reply to STATE.GET.
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
            lifetime: reply["lifetime"]?.textValue.flatMap { StateModel.Lifetime(rawValue: $0) },
            durability: reply["durability"]?.textValue ?? "",
            isDefault: reply["default"] != nil,
            origin: reply["origin"]?.textValue ?? "",
            isCurrent: reply["current"]?.integerValue.map { $0 != 0 },
            age: reply["age"]?.integerValue
        )
    }

    /// How many keys match the pattern, now or at a revision.
    ///
    /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
    public func count(of pattern: Pattern, at revision: Int64? = nil) throws(StateError) -> Int64 {
        var arguments = [Array("STATE.LIST".utf8), pattern.argument, Array("COUNT".utf8)]
        if let revision { arguments.add("AT", String(revision)) }
        let reply = try call(arguments)
        guard let count = reply.integerValue else { throw Self.unexpected("STATE.LIST") }
        return count
    }

    /// The entries that match the pattern, in key order, in pages.
    ///
    /// All pages show the state of one moment: a listing with more than one page restarts at the
    /// revision that is then current. A daemon without history (`--memory`) guarantees this only
    /// within a page; changes between two pages may or may not be included.
    ///
    /// - Parameters:
    ///   - pattern: The keys to list.
    ///   - keysOnly: Omits values and revisions.
    ///   - isLong: Adds where each entry is stored, its schema type and its owner.
    ///   - revision: The revision to list; nil for now.
    /// - Returns: A listing; it sends nothing before its first page is requested.
    public func pages(
        of pattern: Pattern,
        keysOnly: Bool = false,
        isLong: Bool = false,
        at revision: Int64? = nil
    ) -> Pages {
        let form = keysOnly ? "KEYS" : isLong ? "LONG" : nil
        return Pages(client: self, pattern: pattern, form: form, revision: revision)
    }

    /// The daemon's status, in its order.
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

    /// Returns once everything that anybody has written so far is on stable storage, also changes
    /// of keys with durability ``Durability/interval``; and once everything that a cluster had is
    /// here, if there are keys of one.
    ///
    /// - Parameter isLocal: Whether not to wait for a cluster.
    /// - Returns: A revision up to which that is so.
    /// - Throws: The error of storage: what is not stored yet stays visible, and is tried again;
    ///   ``StateError/Code/away`` if the cluster cannot be reached.
    @discardableResult
    public func sync(isLocal: Bool = false) throws(StateError) -> Int64 {
        try ask("STATE.SYNC", words: isLocal ? ["LOCAL"] : []).number("revision")
    }

    /// The result of a compaction.
    public struct Compaction: Sendable {
        /// The oldest revision from which the history is complete.
        public let compacted: Int64
        /// How many bytes were returned to the file system; nil unless requested.
        public let freedByteCount: Int64?
    }

    /// Removes superseded changes from the history; returns when that is done.
    ///
    /// - Parameters:
    ///   - revision: The oldest revision to keep history from; nil: as the daemon's retention says.
    ///   - shrinks: Whether to return free pages to the file system; writes wait meanwhile.
    /// - Returns: From where the history is complete, and how much was freed.
    /// - Throws: ``StateError/Code/invalidRequest`` for a revision above the current one.
    ///   ``StateError/Code/noSpace`` if there is no room for the copy that shrinking makes; the
    ///   history is compacted then.
    public func compact(to revision: Int64?, shrinks: Bool) throws(StateError) -> Compaction {
        let words = (revision.map { ["TO", String($0)] } ?? []) + (shrinks ? ["SHRINK"] : [])
        let reply = try ask("STATE.COMPACT", [], .waits, words: words)
        return Compaction(
            compacted: try reply.number("compacted"),
            freedByteCount: reply["freed"]?.integerValue
        )
    }

    /// A listing in progress.
    public struct Pages {
        private let client: Client
        private let pattern: Pattern
        /// The option for what each row contains; nil for key, value and revision.
        private let form: String?
        /// The revision to list; nil until it is decided.
        private var revision: Int64?
        private var last: [UInt8]?
        private var isDone = false
        /// Reduced if a page of large values is too big for one reply.
        private var limit = 1_000

        init(client: Client, pattern: Pattern, form: String?, revision: Int64?) {
            self.client = client
            self.pattern = pattern
            self.form = form
            self.revision = revision
        }

        /// The next page, never empty; nil after the last.
        ///
        /// - Throws: The daemon's error, or ``StateError/Code/unreachable``.
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

        /// There is a second page: decides which revision all pages show.
        ///
        /// - Returns: False if the daemon keeps no history.
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
