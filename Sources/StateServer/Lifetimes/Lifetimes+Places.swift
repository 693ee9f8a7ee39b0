import CLinux
import StateEngine

/// Watched processes take places of clients, because each takes a descriptor of the daemon.
extension Lifetimes {
    /// How many processes are watched, each by a descriptor: they take places of clients.
    var processCount: Int { processes.count }

    /// How many of them are of a user.
    func processCount(of uid: UInt32) -> Int { processCounts[uid] ?? 0 }

    /// Refuses to watch one more process where a client would be refused.
    func checkPlaces(for connection: Connection) throws(StateError) {
        let limit = settings.options.clientCount
        let uid = connection.peer.uid
        let count = registry.count + processCount
        let own = registry.memory.connectionCount(of: uid) + processCount(of: uid)
        let isPrivileged = connection.subject.isPrivileged
        guard count < limit, isPrivileged || own < max(1, limit / 4 * 3) else {
            throw StateError(
                .limit,
                "no place for process \(connection.peer.pid) of uid \(uid): each process with "
                    + "such keys counts as a client (limits.clients, \(limit)); use LIFETIME "
                    + "connection"
            )
        }
    }
}
