/// What is known of keys that no storage keeps, beside those that it does.
struct MemoryKeys: ~Copyable {
    /// Whether there are such keys, or were in this life.
    var areUsed = false
    /// The keys that are in memory, or were in this life.
    var patterns: [Pattern] = []
    /// The last commit that changed one: the history does not have all that came up to it.
    var lastRevision: Int64 = 0
    /// Which keys former lives kept in memory, and up to which revision they may have been reported.
    var forgotten: [ForgottenKeys] = []
    /// What the last exchange of the rules has moved, until it is durable.
    var lastMove: KeyspaceCore.Move?
}
