import StateEngine

/// What happens when other rules say who may see what.
extension Server {
    /// Takes over that the rules of the keyspace were exchanged: to be called under its lock, right after that.
    ///
    /// If they say other things of access than before, each watch of somebody whom rules may keep out begins anew, with a gap and
    /// the state that he may see now; so does who asks for changes since a revision before this. What is being read from the history
    /// for him is refused.
    ///
    /// - Complexity: O(*n*) in the watches, and in the rules.
    package func accessChanged() {
        guard services.access.take(at: services.turn.time) else { return }
        for connection in registry.connections where !connection.subject.isPrivileged {
            for watcher in connection.watches.all.values where watcher.watcher.beginAnew() {
                registry.addAdvancing(connection)
            }
            if let blocked = connection.inbound.blocked, blocked.isWaiting {
                services.waitingForChanges.wake(blocked)
            }
        }
    }
}
