/// Properties of the store that is served.
struct ServedStore {
    let isPersistent: Bool
    /// Whether earlier values can be read.
    let hasHistory: Bool
    /// The storage's fields in STATE.STATUS: name and value.
    let report: () -> [(String, String)]
    /// How many changes are published and not stored yet, and their bytes.
    let deferred: () -> (count: Int, byteCount: Int)
    /// What cannot be read in the store, as a sentence.
    var damage: String?
}
