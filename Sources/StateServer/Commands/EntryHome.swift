import StateEngine

/// What the rules say of an entry in the long form of a listing.
struct EntryHome {
    /// Where it lives.
    var backing = ""
    /// The one type that its schema allows, in the words of JSON Schema; empty where it allows several.
    var typeName = ""

    init() {}

    init(of key: Bytes, in core: KeyspaceCore) {
        let settings = core.rules?.rule(for: key)?.settings
        backing = core.isPersistent ? settings?.backing?.value.name ?? "sqlite" : "memory"
        typeName = settings?.schema?.value.typeName ?? ""
    }
}
