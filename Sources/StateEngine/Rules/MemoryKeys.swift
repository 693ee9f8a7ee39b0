/// The state of keys whose changes are published before they are stored, in a persistent store:
/// those that are kept in memory only, and those that storage may have later.
struct MemoryKeys: ~Copyable {
    /// Whether there are any; stays true once there were.
    var publishEarly = false
    /// Whether there are keys in memory only.
    var areUsed = false
    /// The patterns of keys in memory.
    var patterns: [Pattern] = []
    /// How many durable entries are in memory only.
    var count = 0
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
