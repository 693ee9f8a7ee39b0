package import StateEngine

/// What happens when other rules say who may see what.
extension Server {
    /// Takes over that the rules of the keyspace were exchanged: to be called under its lock, right after that.
    ///
    /// Where they say other things of access than before, each watch of somebody whom rules may keep out begins anew, with a gap and
    /// the state that he may see now; so does who asks for changes since a revision before this. What is being read from the history
    /// for him is refused.
    ///
    /// - Complexity: O(*n*) in the watches, and in the rules.
    package func accessChanged(_ core: KeyspaceCore) { dispatcher.accessChanged(core) }
}

extension Dispatcher {
    func accessChanged(_ core: KeyspaceCore) {
        guard core.rules?.accessText ?? "" != access.text else { return }
        access.count += 1
        noteAccess(core)
        for connection in registry.connections where !connection.subject.isPrivileged {
            for watcher in connection.watchers.values where watcher.watcher.beginAnew() {
                registry.addAdvancing(connection)
            }
            if let blocked = connection.blocked, blocked.isWaiting {
                waitingForChanges.wake(blocked)
            }
        }
    }

    /// Finds out since when the rules of access are as they are; the store remembers it over restarts.
    func noteAccess(_ core: KeyspaceCore) {
        access.text = core.rules?.accessText ?? ""
        let mark = AccessMark(access.text)
        // Nobody is answered.
        var receipt = core.makeReceipt()
        if let known = core.note(AccessMark.noteName, &receipt).flatMap(AccessMark.read) {
            access.revision = known.revision
            if known.mark == mark { return }
        } else if access.text.isEmpty {
            return
        }
        guard core.transaction.revision == 0 else {
            // Nothing of its own can be committed inside of a transaction.
            access.revision = core.revisions.durable
            return
        }
        let cause = core.retainCause(.thisProcess)
        defer { core.release(cause) }
        core.begin(cause, at: now)
        do throws(StateError) {
            let text = mark.note(core.transaction.revision)
            try core.setNote(AccessMark.noteName, to: text)
            access.revision = core.finish(&receipt)
        } catch {
            // It is known as long as this process runs.
            core.rollBack()
            access.revision = core.revisions.durable
        }
    }

    /// A commit failed, and with it perhaps what noted a change of access.
    func noteFailure(from revision: Int64, _ core: KeyspaceCore) {
        if access.revision >= revision { access.revision = core.revisions.durable }
    }

    /// Whether the rules of access were others at a revision, so that what a connection knows of it is not what it may see.
    func isBeforeAccess(_ revision: Int64, _ connection: Connection) -> Bool {
        revision < access.revision && !connection.subject.isPrivileged
    }

    /// Whether they were when what is being read for a connection was begun.
    func isStale(_ count: Int, _ connection: Connection) -> Bool {
        count != access.count && !connection.subject.isPrivileged
    }

    /// Refuses what was read while the rules of access changed.
    func requireSameAccess(_ connection: Connection) throws(StateError) {
        guard isStale(connection.accessCount, connection) else { return }
        throw StateError(
            .noPermission,
            "the rules of who may read what have changed while this was read; ask again"
        )
    }
}

/// The rules of access that hold, as the loop knows them.
struct AccessState {
    /// What they say; see ``KeyRules/accessText``.
    var text = ""
    /// The commit since which they say it; 0 where they have always.
    var revision: Int64 = 0
    /// How often they have changed while this process runs.
    var count = 0
}

/// What the store remembers of the rules of access: FNV-1a of what they say, so that another text is seen to be another.
struct AccessMark: Equatable {
    /// Begins as every note does that a store knows as one; a handler's has a uid behind that.
    static let noteName = "handler:access"
    private let hash: UInt64

    init(_ text: String) {
        hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    private init(hash: UInt64) { self.hash = hash }

    /// The note of it, with the commit that it is of.
    func note(_ revision: Int64) -> String { "\(revision) \(String(hash, radix: 16))" }

    /// Reads that; nil for what is none.
    static func read(_ note: String) -> (mark: AccessMark, revision: Int64)? {
        let parts = note.split(separator: " ")
        guard parts.count == 2, let revision = Int64(parts[0]),
            let hash = UInt64(parts[1], radix: 16)
        else { return nil }
        return (AccessMark(hash: hash), revision)
    }
}
