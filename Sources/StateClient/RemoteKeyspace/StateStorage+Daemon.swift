public import StateContainers
import StateModel

extension StateStorage {
    /// The daemon's values, connected at the first use; see ``RemoteKeyspace``.
    ///
    /// - Parameter socket: The daemon's socket; nil: the one that `statectl` uses.
    /// - Returns: The storage; nothing is connected yet.
    public static func daemon(socket: String? = nil) -> StateStorage {
        StateStorage(socket.map { "daemon at \($0)" } ?? "daemon") { () throws(StateError) in
            try RemoteKeyspace.shared(socket: socket)
        }
    }
}
