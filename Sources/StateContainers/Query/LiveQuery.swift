public import StateEngine

/// The current results of a query: an ordered collection that publishes its changes.
///
/// It always shows the complete state after some commit. When a write has returned, the rows show
/// it, or a later one; a change that is visible before it is stored (``Durability/memory``) is shown
/// once it is stored. It is read-only: write to the keyspace, or to a container of one of the keys.
/// It follows the keyspace until its last reference is released.
public final class LiveQuery<Value: Codable & Sendable>: Sendable {
    /// The query.
    public let query: StateQuery<Value>
    private let feed: QueryFeed<Value>
    private let watch: any KeyspaceWatch

    /// Runs `query` on `keyspace`; blocks until the rows are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    /// - Complexity: O(*n* log *n*) in the rows; afterwards O(log *n*) comparisons for each change.
    public init(_ query: StateQuery<Value>, in keyspace: any Keyspace) throws(StateError) {
        self.query = query
        let feed = QueryFeed(query)
        self.feed = feed
        watch = keyspace.watch { [weak feed] event in feed?.receive(event) }
        watch.include([query.pattern])
        (keyspace as? any WaitableKeyspace)?.checkMayWait()
        feed.loading.wait()
        if case .failure(let error)? = feed.loading.result { throw error }
    }

    deinit { watch.cancel() }

    /// The current rows, in order.
    ///
    /// - Complexity: O(1) if nothing has changed. Otherwise this thread shows the changes, unless
    ///   another has begun.
    public var rows: QueryRows<Value> { feed.current }

    /// The current rows, then always the latest, as long as the query lives; see
    /// ``MonitoredState/values``.
    public var values: StateValues<QueryRows<Value>> {
        StateValues { [feed] slot in
            feed.catchUp()
            return feed.rows.join(slot, from: .current)
        }
    }

    /// Calls `body` for changes of the rows, as long as the query lives and the observation is
    /// kept.
    ///
    /// Changes that arrive during a call become one.
    ///
    /// - Parameters:
    ///   - queue: Where `body` runs.
    ///   - initial: Whether `body` first gets the current rows.
    ///   - body: Receives the changes.
    /// - Returns: The observation; releasing it ends the calls.
    public func observe(
        on queue: StateQueue = .notifier,
        initial: Bool = true,
        _ body: @escaping @Sendable (StateChange<QueryRows<Value>>) -> Void
    ) -> StateObservation {
        feed.catchUp()
        return feed.rows.observe(on: queue, initial: initial, body)
    }

    /// The keys whose values cannot be read, with the errors; they have no rows.
    public var unreadable: [Key: StateError] { feed.unreadable }

    /// Why the rows may be outdated; nil if they are current.
    public var absence: StateError? { feed.absence }
}

extension Keyspace {
    /// Runs a query and keeps its rows current.
    ///
    /// - Throws: Any error of the keyspace.
    public func query<Value>(
        _ query: StateQuery<Value>
    ) throws(StateError) -> LiveQuery<Value> {
        try LiveQuery(query, in: self)
    }

    /// Keeps the entries of `pattern` current as values, in the order of their keys.
    ///
    /// - Throws: Any error of the keyspace.
    public func query<Value>(
        _ pattern: Pattern,
        as type: Value.Type = Value.self
    ) throws(StateError) -> LiveQuery<Value> {
        try LiveQuery(StateQuery(pattern, as: type), in: self)
    }
}
