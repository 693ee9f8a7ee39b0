public import Observation
public import StateEngine

/// The current results of a query: an ordered collection that publishes its changes.
///
/// It always shows the complete state after some commit. When a write has returned, the rows show
/// it, or a later one; a change that is visible before it is stored (``Durability/memory``) is shown
/// once it is stored. Rows are inserted, changed and deleted by their ids, which are their keys. It
/// follows the keyspace until its last reference is released. For the Observation library, each
/// property that is read is tracked.
public final class LiveQuery<Value: Codable & Sendable>: Observable, Sendable {
    /// The query.
    public let query: StateQuery<Value>
    private let feed: QueryFeed<Value>
    private let watch: any KeyspaceWatch
    let keyspace: any Keyspace

    /// Runs `query` on `keyspace`; blocks until the rows are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    /// - Complexity: O(*n* log *n*) in the rows; afterwards O(log *n*) comparisons for each change.
    public init(_ query: StateQuery<Value>, in keyspace: any Keyspace) throws(StateError) {
        self.query = query
        self.keyspace = keyspace
        let feed = QueryFeed(query)
        self.feed = feed
        watch = keyspace.watch { [weak feed] event in feed?.receive(event) }
        watch.include([query.pattern])
        (keyspace as? any WaitableKeyspace)?.checkMayWait()
        feed.loading.wait()
        if case .failure(let error)? = feed.loading.result { throw error }
    }

    deinit { watch.cancel() }

    /// The current rows, in order: those of the query's offset and limit.
    ///
    /// - Complexity: O(1) if nothing has changed. Otherwise this thread shows the changes, unless
    ///   another has begun.
    public var rows: QueryRows<Value> { feed.current }

    /// How many rows match the query, without its offset and limit.
    public var count: Int { rows.totalCount }

    /// The sum of a part of all rows that match the query, without its offset and limit.
    ///
    /// A sum that is too large for its type ends the process, as `+` does.
    ///
    /// - Complexity: O(*n*) in the rows the first time, then O(1). Floating-point numbers are added
    ///   again after each change.
    public func sum<Number: AdditiveArithmetic & Sendable>(
        of path: any KeyPath<Value, Number> & Sendable
    ) -> Number {
        feed.sum(path)
    }

    /// The current rows, then always the latest, as long as the query lives; see
    /// ``MonitoredContainer/values``.
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
