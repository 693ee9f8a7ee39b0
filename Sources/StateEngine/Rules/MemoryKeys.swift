/// What is known of keys that no storage keeps, beside those that it does.
struct MemoryKeys: ~Copyable {
    /// Whether there are such keys.
    var areUsed = false
    /// The keys that are in memory.
    var patterns: [Pattern] = []
    /// The last commit that changed one: the history does not have all that came up to it.
    var lastRevision: Int64 = 0
    /// Which keys former lives kept in memory, and up to which revision they may have been reported.
    var forgotten: [ForgottenKeys] = []
    /// The rules of the start, which say where keys live.
    var locations: KeyRules?
    /// Whether they are the rules that hold.
    var areInstalled = false
}
