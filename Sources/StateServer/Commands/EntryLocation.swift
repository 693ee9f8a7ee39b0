import StateEngine

/// What the rules say of an entry in the long form of a listing.
struct EntryLocation {
    /// Where it lives.
    var backing = ""
    /// The one type that its schema allows, in the words of JSON Schema; empty where it allows several.
    var typeName = ""

    init() {}

    init(of key: Bytes, in core: KeyspaceCore) {
        backing = core.isPersistent ? core.backing(of: key)?.name ?? "sqlite" : "memory"
        typeName = core.rules?.rule(for: key)?.settings.schema?.value.typeName ?? ""
    }
}
