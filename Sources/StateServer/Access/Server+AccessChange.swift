import StateEngine

/// What happens when the access rules change.
extension Server {
    /// Finds out since when the access rules of this start are in force.
    func resolveAccess() {
        services.access.resolve(at: turn.time)
        identifyUnits()
    }

    /// Reads the units of clients from now on if rules name some, and of those that are connected.
    ///
    /// Their watches are asked for the same subjects, and have to begin anew.
    private func identifyUnits() {
        let readsUnits = services.access.namesUnits
        guard registry.subjects.readsUnits != readsUnits else { return }
        registry.subjects.readsUnits = readsUnits
        for connection in registry.connections where !connection.subject.isPrivileged {
            let before = connection.subject
            connection.identify(&registry.subjects)
            guard connection.subject !== before else { continue }
            for watcher in connection.watches.all.values {
                core.hub.move(watcher.watcher, to: connection.subject)
            }
        }
        services.channels.accessChanged()
    }

    /// Takes over new rules of the keyspace.
    ///
    /// Call it under the keyspace's lock, right after the change.
    ///
    /// If the access rules changed, each watch of a user whom rules may restrict begins anew, with
    /// a gap and the state that the user may see now. STATE.CHANGES since an earlier revision also
    /// gives a gap. Reads of the history that are running for such a user are refused.
    ///
    /// - Complexity: O(*n*) in the watches, and in the rules; if these are the first or the last
    ///   that name a unit, O(*n*) in the patterns of the watches.
    func accessChanged() {
        guard services.access.take(at: services.turn.time) else { return }
        identifyUnits()
        services.tracking.accessChanged()
        services.monitors.accessChanged(core)
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
