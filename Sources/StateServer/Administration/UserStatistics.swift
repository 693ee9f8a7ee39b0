import CLinux

/// What the clients of each user have done, for STATE.METRICS.
///
/// Of at most ``limit`` users, those who connected first; all others are counted as one. A user keeps
/// the counts for as long as the daemon runs, so that they only rise. Used only by the loop thread.
struct UserStatistics {
    /// The counts of one user, or of all others.
    struct Counts {
        /// Accepted connections.
        var connections = 0
        /// Commands and commits of connections that have ended.
        var commands = 0
        var commits = 0
        /// Errors in reply to commands, and how many of these were refused by a rule.
        var errors = 0
        var denials = 0
        // Of connections that are open.
        var clients = 0
        var memory = 0

        fileprivate mutating func add(_ connection: Connection) {
            commands += connection.session.usage.commandCount
            commits += connection.session.usage.commitCount
        }
    }

    /// The most users who are counted apart.
    static let limit = 64

    private var named: [UInt32: Counts] = [:]
    /// Of all other users.
    private var others = Counts()

    /// Counts a connection.
    mutating func noteBegin(_ connection: Connection) {
        let uid = connection.peer.uid
        if named[uid] == nil, named.count < UserStatistics.limit { named[uid] = Counts() }
        change(uid) { $0.connections += 1 }
    }

    /// Keeps the counts of a connection that ends.
    mutating func noteEnd(_ connection: Connection) {
        change(connection.peer.uid) { $0.add(connection) }
    }

    /// Counts an error in reply to a command.
    mutating func noteError(of uid: UInt32, isDenial: Bool) {
        change(uid) { counts in
            counts.errors += 1
            if isDenial { counts.denials += 1 }
        }
    }

    private mutating func change(_ uid: UInt32, _ body: (inout Counts) -> Void) {
        if named[uid] != nil { body(&named[uid, default: Counts()]) } else { body(&others) }
    }

    /// The counts with those of the connections that are open: by uid, at last `other` if there is
    /// one.
    ///
    /// - Complexity: O(*n*) in the connections.
    func rows(_ connections: some Collection<Connection>) -> [(uid: String, counts: Counts)] {
        var all = self
        for connection in connections {
            all.change(connection.peer.uid) { counts in
                counts.add(connection)
                counts.clients += 1
                counts.memory += connection.share.byteCount
            }
        }
        let rows = all.named.sorted { $0.key < $1.key }.map { (uid: "\($0.key)", counts: $0.value) }
        return rows + (all.others.connections > 0 ? [("other", all.others)] : [])
    }
}

extension ReplyGate {
    /// Counts an error in reply to a command for its user, and logs it if a rule refused the command.
    @inline(never)
    func noteError(_ context: borrowing CommandContext) {
        let isDenial = logDenial(context)
        let uid = context.connection.peer.uid
        registry.memory.users.noteError(of: uid, isDenial: isDenial)
    }
}
