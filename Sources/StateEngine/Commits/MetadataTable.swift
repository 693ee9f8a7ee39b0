/// Metadata by name, including that of the open transaction and of pending commits.
struct MetadataTable: ~Copyable {
    /// The newest version of an entry.
    struct Version: Sendable {
        var revision: Int64
        var text: String
    }

    private var versions: [String: Version] = [:]
    /// The revision of the last change that nothing has undone; a removed entry has no version.
    private var lastChange: Int64 = 0
    /// Whether the backing keeps metadata; set before anything is written.
    var isKept = true

    subscript(name: String) -> Version? { versions[name] }

    func forEach(_ body: (_ name: String, _ text: String) -> Void) {
        for (name, version) in versions { body(name, version.text) }
    }

    mutating func set(_ entry: MetadataEntry) {
        versions[entry.name] = entry.text.map { Version(revision: entry.revision, text: $0) }
        lastChange = entry.revision
    }

    /// Undoes entries, the newest first.
    mutating func undo(_ metadata: [MetadataEntry]) {
        for entry in metadata.reversed() {
            versions[entry.name] = entry.superseded
            lastChange = min(lastChange, entry.revision - 1)
        }
    }

    /// Replaces everything with what storage holds up to `revision`; nothing may be provisional.
    mutating func load(_ stored: [String: String], at revision: Int64) {
        versions = stored.mapValues { Version(revision: revision, text: $0) }
        lastChange = revision
    }

    /// Whether something was changed or removed after `revision`.
    func isNewer(than revision: Int64) -> Bool { lastChange > revision }
}
