/// The clients of one user with CLIENT TRACKING, which share the user's part of the table.
///
/// Used only by the loop thread.
final class TrackedUser {
    let uid: UInt32
    /// By the number of the connection.
    var clients: [Int: TrackedClient] = [:]
    /// Keys in the table, once for each client.
    var itemCount = 0
    /// The client that had most keys when all were looked at, and after how many evictions they are
    /// looked at again.
    private var largest: TrackedClient?
    private var evictionsToLook = 0

    init(uid: UInt32) { self.uid = uid }

    func add(_ client: TrackedClient) { clients[client.connection.number] = client }

    func remove(_ client: TrackedClient) {
        clients[client.connection.number] = nil
        if largest === client { (largest, evictionsToLook) = (nil, 0) }
    }

    /// Who loses a key of this user: `client`, if it has more than its share or is nil, else the
    /// one that has most.
    ///
    /// - Complexity: O(1) amortized: all clients are looked at once for as many evictions.
    func loser(besides client: TrackedClient?) -> TrackedClient? {
        let share = itemCount / max(1, clients.count)
        if let client, client.copies.count > share { return client }
        if evictionsToLook <= 0 || largest?.copies.count == 0 {
            largest = clients.values.max { $0.copies.count < $1.copies.count }
            evictionsToLook = clients.count
        }
        evictionsToLook -= 1
        return largest
    }
}
