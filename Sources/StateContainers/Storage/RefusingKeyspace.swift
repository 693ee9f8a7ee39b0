import StateEngine

/// The keyspace of containers whose storage could not be opened: it is empty, and refuses every
/// change with the reason.
final class RefusingKeyspace: Keyspace {
    let epoch = Epoch.random()
    private let error: StateError

    init(_ error: StateError) { self.error = error }

    func submit(
        _ mutations: [Mutation],
        completion: @escaping @Sendable (Result<Int64, StateError>) -> Void
    ) -> Int64? {
        completion(.failure(error))
        return nil
    }

    func entry(for key: Key) throws(StateError) -> Entry? { throw error }

    func entries(
        _ pattern: Pattern,
        after key: Key?,
        limit: Int
    ) throws(StateError) -> [(
        key: Key, entry: Entry
    )] { throw error }

    func watch(_ receive: @escaping @Sendable (KeyspaceEvent) -> Void) -> any KeyspaceWatch {
        Silence()
    }

    /// A watch of a keyspace in which nothing happens.
    private final class Silence: KeyspaceWatch {
        func include(_ patterns: [Pattern]) {}
        func exclude(_ patterns: [Pattern]) {}
        func cancel() {}
    }
}
