public import Observation
public import StateEngine

/// The current results of a query: an ordered collection that publishes its changes.
///
/// It always shows the complete state after some commit. When a write has returned, the rows show
/// it, or a later one; a change that is visible before it is stored (``Durability/memory``) is shown
/// once it is stored. Rows are inserted, changed and deleted by their ids, which are their keys. It
/// follows the keyspace until its last reference is released, and that of its observations and
/// streams. For the Observation library, each property that is read is tracked.
public final class LiveQuery<Value: Codable & Sendable>: Observable, Sendable {
    /// The query.
    public let query: StateQuery<Value>
    /// Follows the keyspace for this query, its observations and its streams, which retain it.
    let feed: QueryFeed<Value>
    let keyspace: any Keyspace

    /// Runs `query` on `keyspace`; blocks until the rows are loaded.
    ///
    /// - Throws: Any error of the keyspace; ``StateError/Code/invalidRequest`` if the type of the rows
    ///   has a rule that nobody checks.
    /// - Complexity: O(*n* log *n*) in the rows; afterwards O(log *n*) comparisons for each change. All
    ///   rows are kept, also those outside of offset and limit. But a page of the keys
    ///   (``StateQuery/limit(_:)``) takes O(offset + limit) for each change, keeps only its rows, and
    ///   copies no other entries of a keyspace in this process. Of one elsewhere it keeps the bytes.
    public init(_ query: StateQuery<Value>, in keyspace: any Keyspace) throws(StateError) {
        self.query = query
        self.keyspace = keyspace
        feed = try QueryFeed(query, in: keyspace)
        (keyspace as? any WaitableKeyspace)?.checkMayWait()
        feed.loading.wait()
        if case .failure(let error)? = feed.loading.result { throw error }
    }

    /// Runs `query` on `keyspace`; returns when the rows are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    /// - Complexity: As the other form.
    public nonisolated(nonsending) init(
        _ query: StateQuery<Value>,
        in keyspace: any Keyspace
    ) async throws(StateError) {
        self.query = query
        self.keyspace = keyspace
        feed = try QueryFeed(query, in: keyspace)
        await feed.loading.wait()
        if case .failure(let error)? = feed.loading.result { throw error }
    }

    /// The current rows, in order: those of the query's offset and limit.
    ///
    /// - Complexity: O(1) if nothing has changed. Otherwise this thread shows the changes, unless
    ///   another has begun.
    public var rows: QueryRows<Value> { feed.current }

    /// How many rows match the query, without its offset and limit.
    ///
    /// A value that cannot be read is no row. Only a page of the keys (``StateQuery/limit(_:)``)
    /// counts entries, because it does not read them.
    public var count: Int { rows.totalCount }

    /// The sum of a part of all rows that match the query, without its offset and limit.
    ///
    /// A sum that is too large for its type ends the process, as `+` does.
    ///
    /// - Complexity: O(*n*) in the rows the first time, then O(1). Floating-point numbers are added
    ///   again after each change. A page of the keys (``StateQuery/limit(_:)``) does not keep the
    ///   other rows, and reads all of them for each call.
    public func sum<Number: AdditiveArithmetic & Sendable>(
        of path: any KeyPath<Value, Number> & Sendable
    ) -> Number {
        feed.sum(path)
    }

    /// The current rows, then always the latest; see ``MonitoredContainer/values``.
    ///
    /// The sequence and its iterators keep the query running.
    public var values: StateValues<QueryRows<Value>> {
        StateValues { [feed] slot in
            feed.catchUp()
            return Membership(feed.rows.join(slot, from: .current), retaining: feed)
        }
    }

    /// Calls `body` for changes of the rows until the returned observation is released, which keeps
    /// the query running.
    ///
    /// Calls never overlap. Changes that arrive during a call become one. A closure that is isolated
    /// to an actor runs there, any other on ``StateQueue/notifier``; see
    /// ``MonitoredContainer/observe(initial:file:line:_:)``.
    ///
    /// - Parameters:
    ///   - initial: Whether `body` first gets the current rows.
    ///   - file: The caller's file, which traces show.
    ///   - line: The caller's line, which traces show.
    ///   - body: Receives the changes.
    /// - Returns: The observation; releasing it ends the calls.
    public func observe(
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        @_inheritActorContext _ body:
            @escaping @isolated(any) @Sendable (
                StateChange<QueryRows<Value>>
            ) -> Void
    ) -> StateObservation {
        feed.catchUp()
        return feed.rows.observe(initial: initial, file: file, line: line, body).retaining(feed)
    }

    /// Calls `body` on `queue` for changes of the rows until the returned observation is released,
    /// which keeps the query running.
    ///
    /// Calls never overlap. Changes that arrive during a call become one.
    ///
    /// On ``StateQueue/inline``, `body` has been called for a commit when its write returns, unless a
    /// call was running on another thread then: that one is followed by another. The thread that
    /// delivers the commit computes the rows and calls `body`; it is the writer's, or the keyspace's
    /// own. So order, filter, codec and `body` hold up all writers, and `body` must not write to the
    /// keyspace and wait: that ends the process, with a message. `submit` may be used.
    ///
    /// - Parameters:
    ///   - queue: Where `body` runs.
    ///   - initial: Whether `body` first gets the current rows.
    ///   - file: The caller's file, which traces show.
    ///   - line: The caller's line, which traces show.
    ///   - body: Receives the changes.
    /// - Returns: The observation; releasing it ends the calls.
    public func observe(
        on queue: StateQueue,
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        _ body: @escaping @Sendable (StateChange<QueryRows<Value>>) -> Void
    ) -> StateObservation {
        feed.catchUp()
        return feed.rows.observe(on: queue, initial: initial, file: file, line: line, body)
            .retaining(feed)
    }

    /// The keys whose values cannot be read, or break the rules of their type, with the errors; they
    /// have no rows.
    ///
    /// Of a page of the keys (``StateQuery/limit(_:)``), those on the page.
    public var unreadable: [Key: StateError] { feed.unreadable }

    /// Why the rows may be outdated; nil if they are current.
    public var absence: StateError? { feed.absence }
}

extension Keyspace {
    /// Runs a query and keeps its rows current; blocks until they are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    public func query<Value>(
        _ query: StateQuery<Value>
    ) throws(StateError) -> LiveQuery<Value> {
        try LiveQuery(query, in: self)
    }

    /// Runs a query and keeps its rows current; returns when they are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    public nonisolated(nonsending) func query<Value>(
        _ query: StateQuery<Value>
    ) async throws(StateError) -> LiveQuery<Value> {
        try await LiveQuery(query, in: self)
    }

    /// Keeps the entries of `pattern` current as values, in the order of their keys; blocks until
    /// they are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    public func query<Value>(
        _ pattern: Pattern,
        as type: Value.Type = Value.self
    ) throws(StateError) -> LiveQuery<Value> {
        try LiveQuery(StateQuery(pattern, as: type), in: self)
    }

    /// Keeps the entries of `pattern` current as values, in the order of their keys; returns when
    /// they are loaded.
    ///
    /// - Throws: Any error of the keyspace.
    public nonisolated(nonsending) func query<Value>(
        _ pattern: Pattern,
        as type: Value.Type = Value.self
    ) async throws(StateError) -> LiveQuery<Value> {
        try await LiveQuery(StateQuery(pattern, as: type), in: self)
    }
}
