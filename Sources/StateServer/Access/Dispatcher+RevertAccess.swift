import StateEngine

/// STATE.REVERT is for administrators of the keys that it changes.
extension Dispatcher {
    /// Refuses at once who is no administrator of anything, or not of the one key that is meant.
    func requireRevert(
        _ patterns: PatternSet,
        _ connection: Connection,
        _ core: KeyspaceCore
    ) throws(StateError) {
        let subject = connection.subject
        guard !subject.isPrivileged else { return }
        guard let rules = core.rules, rules.namesAdministrator(subject) else {
            return try requireAdmin(connection, "STATE.REVERT", core)
        }
        for pattern in patterns.patterns where pattern.kind == .key {
            try requireRevert(pattern.literal, subject, core)
        }
    }

    /// Refuses to revert a key to whom it is not to be administered by, or who may not read it: errors tell of values.
    func requireRevert(
        _ key: [UInt8],
        _ subject: Subject,
        _ core: KeyspaceCore
    ) throws(StateError) {
        try key.withBorrowed { (key) throws(StateError) in
            try core.require(.admin, ofSeen: key, for: subject)
        }
    }
}
