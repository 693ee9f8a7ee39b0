/// Metadata by name, including that of the open transaction and of pending commits.
struct MetadataTable: ~Copyable {
    /// The newest version of an entry.
    struct Version: Sendable {
        var revision: Int64
        var text: String
        /// Whether nothing undoes it, although storage may not have it yet.
        var isPublished = false
    }

    private var versions: [String: Version] = [:]
    /// Entries that were not durable when the last one was set, the newest last.
    private var recent: [MetadataEntry] = []
    /// The revision of the last change that something may undo, and nothing has undone; a removed
    /// entry has no version.
    private var lastChange: Int64 = 0
    /// Whether the backing keeps metadata; set before anything is written.
    var isKept = true

    subscript(name: String) -> Version? { versions[name] }

    func forEach(_ body: (_ name: String, _ text: String) -> Void) {
        for (name, version) in versions { body(name, version.text) }
    }

    /// Calls `body` with each entry as it was at a revision, which must not be below the durable one.
    func forEach(at revision: Int64, _ body: (_ name: String, _ text: String) -> Void) {
        var earlier: [String: Version?] = [:]
        for entry in recent.reversed() where entry.revision > revision {
            earlier[entry.name] = .some(entry.superseded)
        }
        for (name, version) in versions where earlier[name] == nil { body(name, version.text) }
        for case (let name, let version?) in earlier { body(name, version.text) }
    }

    /// - Parameters:
    ///   - entry: Of a transaction.
    ///   - durable: Entries up to this revision stay.
    mutating func set(_ entry: MetadataEntry, above durable: Int64) {
        recent.removeFirst(recent.prefix { $0.revision <= durable }.count)
        recent.append(entry)
        versions[entry.name] = entry.text.map { Version(revision: entry.revision, text: $0) }
        if !entry.isDeferrable { lastChange = entry.revision }
    }

    /// The transaction of deferrable entries is finished, and published or not.
    mutating func finish(_ metadata: [MetadataEntry], isPublished: Bool) {
        for entry in metadata where entry.isDeferrable {
            if isPublished {
                versions[entry.name]?.isPublished = true
            } else {
                lastChange = entry.revision
            }
        }
    }

    /// Undoes entries that were not published, the newest first.
    mutating func undo(_ metadata: [MetadataEntry]) {
        for entry in metadata.reversed() where !entry.isPublished {
            versions[entry.name] = entry.superseded
            let index = recent.lastIndex {
                $0.revision == entry.revision && $0.name == entry.name
            }
            if let index { recent.remove(at: index) }
            lastChange = min(lastChange, entry.revision - 1)
        }
    }

    /// Takes what storage holds up to `revision`, at the start.
    mutating func load(_ stored: [String: String], at revision: Int64) {
        versions = stored.mapValues { Version(revision: revision, text: $0) }
        lastChange = revision
    }

    /// Takes what commits up to `revision` changed that were undone and are in storage; nothing may be
    /// provisional.
    ///
    /// - Parameters:
    ///   - changed: By name; nil for what was removed.
    ///   - revision: That of the last commit.
    ///   - storedRevision: What was published after that is newer.
    mutating func adopt(
        _ changed: [String: String?],
        at revision: Int64,
        keepingPublishedAfter storedRevision: Int64
    ) {
        for (name, text) in changed {
            if let known = versions[name], known.isPublished, known.revision > storedRevision {
                continue
            }
            versions[name] = text.map { Version(revision: revision, text: $0) }
        }
        lastChange = revision
    }

    /// Whether something was changed or removed after `revision`.
    func isNewer(than revision: Int64) -> Bool { lastChange > revision }
}
