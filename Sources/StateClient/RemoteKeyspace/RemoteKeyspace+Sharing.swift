public import StateModel
import StateSystem

extension RemoteKeyspace {
    /// The keyspace of a daemon that everybody in this process shares, as long as somebody holds it.
    ///
    /// One that was closed is made anew.
    ///
    /// - Parameter socket: As of ``init(socket:name:timeout:whileAway:)``.
    /// - Returns: The same one to everybody.
    /// - Throws: as ``init(socket:name:timeout:whileAway:)``.
    public static func shared(socket: String? = nil) throws(StateError) -> RemoteKeyspace {
        let path = try Client.path(of: socket)
        return try keyspaces.withLock { (keyspaces) throws(StateError) in
            if let keyspace = keyspaces[path]?.keyspace, !keyspace.link.isClosed {
                return keyspace
            }
            let keyspace = try RemoteKeyspace(socket: socket)
            keyspaces = keyspaces.filter { $0.value.keyspace != nil }
            keyspaces[path] = Shared(keyspace: keyspace)
            return keyspace
        }
    }

    private struct Shared {
        weak var keyspace: RemoteKeyspace?
    }

    private static let keyspaces = StateLock<[String: Shared]>([:])
}
