public import StateEngine

/// What a query finds, kept current: an ordered collection of which each change is told.
///
/// What it shows is always the state after some commit, whole, and it never rests on an older one. It is read only: write to the
/// keyspace, or to a container of one of the keys. It follows the keyspace until the last reference goes.
public final class LiveQuery<Value: Codable & Sendable>: Sendable {
    /// What is shown.
    public let query: StateQuery<Value>
    private let feed: QueryFeed<Value>
    private let watch: any KeyspaceWatch

    /// Runs `query` on `keyspace`, and waits for its rows.
    ///
    /// - Throws: What the keyspace failed with.
    /// - Complexity: O(*n* log *n*) in the rows; and the same again for each group of commits that touches them.
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

    /// The rows of now, in order.
    ///
    /// - Complexity: O(1).
    public var rows: [QueryRow<Value>] { feed.rows.value }

    /// The rows of now, then always the latest, as long as the query lives; see ``MonitoredState/values``.
    public var values: StateValues<[QueryRow<Value>]> { feed.rows.values }

    /// Calls `body` for each change of the rows, as long as the query lives and what is returned is kept; changes that come while it is
    /// at work become one.
    ///
    /// - Parameters:
    ///   - queue: Where it is called.
    ///   - initial: Whether it is called with the rows of now first.
    ///   - body: What is called.
    /// - Returns: What ends it when it is released.
    public func observe(
        on queue: StateQueue = .notifier,
        initial: Bool = true,
        _ body: @escaping @Sendable (StateChange<[QueryRow<Value>]>) -> Void
    ) -> StateObservation {
        feed.rows.observe(on: queue, initial: initial, body)
    }

    /// The keys whose values cannot be read, and why; they are in no row.
    public var unreadable: [Key: StateError] { feed.unreadable }

    /// Why the rows may be old; nil where they are current.
    public var absence: StateError? { feed.absence }
}

extension Keyspace {
    /// Runs a query and keeps its rows current.
    ///
    /// - Throws: What the keyspace failed with.
    public func query<Value>(
        _ query: StateQuery<Value>
    ) throws(StateError) -> LiveQuery<Value> {
        try LiveQuery(query, in: self)
    }

    /// Keeps the entries of `pattern` current as values, in the order of their keys.
    ///
    /// - Throws: What the keyspace failed with.
    public func query<Value>(
        _ pattern: Pattern,
        as type: Value.Type = Value.self
    ) throws(StateError) -> LiveQuery<Value> {
        try LiveQuery(StateQuery(pattern, as: type), in: self)
    }
}
