/// Notes by name, those of the open transaction and of commits that wait among them.
struct MetadataTable: ~Copyable {
    /// A note as it is now.
    struct Version: Sendable {
        var revision: Int64
        var text: String
    }

    private var versions: [String: Version] = [:]
    /// Whether there is somebody to keep them; set before anything is written.
    var isKept = true

    subscript(name: String) -> Version? { versions[name] }

    func forEach(_ body: (_ name: String, _ text: String) -> Void) {
        for (name, version) in versions { body(name, version.text) }
    }

    mutating func set(_ entry: MetadataEntry) {
        versions[entry.name] = entry.text.map { Version(revision: entry.revision, text: $0) }
    }

    /// Takes notes back, the newest first.
    mutating func undo(_ metadata: [MetadataEntry]) {
        for entry in metadata.reversed() { versions[entry.name] = entry.superseded }
    }

    /// Takes over what storage holds up to `revision`; nothing may be provisional.
    mutating func load(_ stored: [String: String], at revision: Int64) {
        versions = stored.mapValues { Version(revision: revision, text: $0) }
    }

    /// Whether some note is newer than `revision`.
    func isNewer(than revision: Int64) -> Bool {
        versions.values.contains { $0.revision > revision }
    }
}
