import StateEngine

/// The storage and the type of an entry, for the long form of a listing.
struct EntryLocation {
    /// Where it is stored.
    var backing = ""
    /// The one type that its schema allows, as in JSON Schema; empty if it allows several.
    var typeName = ""

    init() {}

    init(of key: Bytes, in core: KeyspaceCore) {
        backing = core.isPersistent ? core.backing(of: key)?.name ?? "sqlite" : "memory"
        typeName = core.rules?.rule(for: key)?.settings.schema?.value.typeName ?? ""
    }
}
