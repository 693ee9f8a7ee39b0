/// The state of keys that are kept in memory only, in a persistent store.
struct MemoryKeys: ~Copyable {
    /// Whether there are such keys.
    var areUsed = false
    /// The patterns of keys in memory.
    var patterns: [Pattern] = []
    /// The last commit that changed one: up to it, the history is incomplete.
    var lastRevision: Int64 = 0
    /// The keys that earlier processes kept in memory, and up to which revision they may have been
    /// published.
    var forgotten: [ForgottenKeys] = []
    /// The rules of the start, which determine where keys live.
    var locations: KeyRules?
    /// Whether they are the current rules.
    var areInstalled = false
}
