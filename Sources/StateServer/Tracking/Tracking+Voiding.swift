import StateEngine
import StateWire

/// Copies that are void for another reason than a commit, and clients of the last process.
extension Tracking {
    /// Declares all copies void, of clients whom rules may restrict: what they may see has changed.
    func accessChanged() { voidCopies { !$0.subject.isPrivileged } }

    /// Declares all copies void, of the clients for which `condition` is true.
    func voidCopies(where condition: (Connection) -> Bool) {
        for client in clients.values where condition(client.connection) {
            leave(client.takeCopies(), client.connection)
            send(nil, to: client)
        }
    }

    /// Goes on with a client as it was in the last process.
    ///
    /// If the table has too many keys then, ``evictAfterResuming()`` takes them out: now the
    /// connection that is to be sent that may not be there yet.
    func resume(_ connection: Connection, _ record: TrackingRecord, _ core: KeyspaceCore) {
        let client = TrackedClient(connection, user(of: connection), record)
        add(client, core)
        client.countPrefixes()
        for known in record.keys {
            note(known.key, at: known.first, client)
            note(known.key, at: known.last, client)
        }
    }

    /// All clients of the last process are there: takes the keys out that are above the limit, which
    /// may be lower now.
    func evictAfterResuming() {
        var count = Int.max
        // Void copies leave in slices: there may be no others.
        while isOverfull, itemCount < count, let client = clients.values.first {
            count = itemCount
            evict(for: client)
        }
    }
}

extension Verb {
    /// Whether a client may keep copies of what it returns of keys.
    var isReadOfKeys: Bool { !isWrite && name != .watch && name != .stateExplain }
}
