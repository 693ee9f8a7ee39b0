public import StateModel
import StateSystem
import StateWire

extension RemoteKeyspace {
    /// The keyspace of a daemon, shared by everybody in this process as long as somebody retains
    /// it.
    ///
    /// If it was closed, a new one is made.
    ///
    /// - Parameter socket: As in ``init(socket:name:timeout:whileAway:)``.
    /// - Returns: The shared keyspace.
    /// - Throws: As ``init(socket:name:timeout:whileAway:)``.
    public static func shared(socket: String? = nil) throws(StateError) -> RemoteKeyspace {
        let path = try SocketLocation.process.clientChoice(option: socket).path
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
