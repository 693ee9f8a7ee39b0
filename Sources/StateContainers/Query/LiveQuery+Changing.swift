public import StateEngine

extension LiveQuery {
    // MARK: Rows

    /// The row of a key, also if offset and limit leave it out; nil if no row of the query has it.
    ///
    /// - Complexity: O(1). Of a page of the keys (``StateQuery/limit(_:)``), O(log *n*), and it
    ///   decodes a row that is not on the page.
    public subscript(id: Key) -> QueryRow<Value>? { feed.row(for: id) }

    /// A binding to the value of a row; nil if there is none.
    ///
    /// A change through it blocks until it is stored, as ``update(id:_:)`` does. If the row goes, the
    /// binding shows the last value, and ``StateBinding/refusal`` is ``StateError/Code/conflict`` for
    /// a change.
    public func binding(id: Key) -> StateBinding<Value>? {
        guard let row = FollowedRow(of: self, id) else { return nil }
        return StateBinding {
            row.current.value
        } changing: { body in
            try row.change(body)
        }
    }

    /// Stores a new row.
    ///
    /// - Parameters:
    ///   - value: The row.
    ///   - id: Its key, which the query's pattern must match.
    /// - Throws: ``StateError/Code/conflict`` if there is a row with this key,
    ///   ``StateError/Code/invalidRequest`` if the pattern does not match it,
    ///   ``StateError/Code/rejected`` for an invalid value, or any error of the keyspace; nothing
    ///   has changed.
    public func insert(_ value: Value, id: Key) throws(StateError) {
        try keyspace.apply([insertion(of: value, id)])
    }

    /// Changes a row in one step.
    ///
    /// `body` runs again if the row has changed meanwhile, so it must have no side effects.
    ///
    /// - Returns: What `body` returned; nil if there is no such row.
    /// - Throws: ``StateError/Code/undecodable`` if the row cannot be read, or why the change was
    ///   refused; the row is unchanged.
    @discardableResult
    public func update<R>(
        id: Key,
        _ body: (inout Value) -> R
    ) throws(StateError) -> R? {
        var patience = RowPatience()
        while true {
            guard let change = try change(of: id, body) else { return nil }
            do throws(StateError) {
                try keyspace.apply([change.mutation])
                return change.result
            } catch {
                try patience.check(error)
            }
        }
    }

    /// Deletes a row.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: Why the delete was refused; the row is there.
    @discardableResult
    public func delete(id: Key) throws(StateError) -> Bool {
        let exists = try keyspace.entry(for: id) != nil
        if exists { try keyspace.apply([.delete(id)]) }
        return exists
    }

    // MARK: Rows, in tasks

    /// Stores a new row; see the other form.
    public nonisolated(nonsending) func insert(_ value: Value, id: Key) async throws(StateError) {
        try await keyspace.apply([insertion(of: value, id)])
    }

    /// Changes a row in one step; see the other form.
    @discardableResult
    public nonisolated(nonsending) func update<R>(
        id: Key,
        _ body: (inout Value) -> R
    ) async throws(StateError) -> R? {
        var patience = RowPatience()
        while true {
            guard let change = try change(of: id, body) else { return nil }
            do throws(StateError) {
                try await keyspace.apply([change.mutation])
                return change.result
            } catch {
                try patience.check(error)
            }
        }
    }

    /// Deletes a row; see the other form.
    @discardableResult
    public nonisolated(nonsending) func delete(id: Key) async throws(StateError) -> Bool {
        let exists = try keyspace.entry(for: id) != nil
        if exists { try await keyspace.apply([.delete(id)]) }
        return exists
    }

    // MARK: Mutations

    private func insertion(of value: Value, _ id: Key) throws(StateError) -> Mutation {
        guard id.bytes.withUnsafeBytes(query.pattern.matches) else {
            throw StateError(
                .invalidRequest,
                "key '\(id)' does not match the query's pattern '\(query.pattern)'"
            )
        }
        return .set(id, try bytes(of: value, id), ifRevision: 0)
    }

    fileprivate func bytes(of value: Value, _ id: Key) throws(StateError) -> [UInt8] {
        guard let bytes = try query.codec.adapted(to: keyspace).encode(value) else {
            throw StateError(.invalidRequest, "a row cannot be nil: delete '\(id)' instead")
        }
        return bytes
    }

    private func change<R>(
        of id: Key,
        _ body: (inout Value) -> R
    ) throws(StateError) -> (result: R, mutation: Mutation)? {
        guard let entry = try keyspace.entry(for: id) else { return nil }
        var value: Value
        do throws(StateError) { value = try query.codec.decode(entry.value) } catch {
            throw error.naming(id)
        }
        let result = body(&value)
        let bytes = try query.codec.adapted(to: keyspace).encode(value)
        let mutation: Mutation =
            bytes.map { .set(id, $0, ifRevision: entry.revision) }
            ?? .delete(id, ifRevision: entry.revision)
        return (result, mutation)
    }
}

extension LiveQuery where Value: Validatable {
    /// An editable copy of a row, which may be invalid until it is committed; nil if there is no such
    /// row.
    ///
    /// If the row has changed or is gone, its commit throws ``StateError/Code/conflict``.
    public func draft(id: Key) -> Draft<Value>? {
        guard let row = FollowedRow(of: self, id) else { return nil }
        return Draft(
            at: Draft.Place {
                let current = row.current
                return (current.value, current.revision)
            } commit: { (value, revision) throws(StateError) in
                try row.replace(with: value, ifRevision: revision)
            } commitInTask: { (value, revision) async throws(StateError) in
                try await row.replace(with: value, ifRevision: revision)
            }
        )
    }
}

/// A row that is shown and changed by its key, and that may go meanwhile.
private final class FollowedRow<Value: Codable & Sendable>: Sendable {
    private let query: LiveQuery<Value>
    /// As it was last seen.
    private let last: StateLock<QueryRow<Value>>
    private let id: Key

    init?(of query: LiveQuery<Value>, _ id: Key) {
        guard let row = query[id] else { return nil }
        self.query = query
        self.id = id
        last = StateLock(row)
    }

    /// The row; if it is gone, as it was last seen.
    var current: QueryRow<Value> {
        guard let row = query[id] else { return last.withLock { $0 } }
        // Handed out, so that the old value is not released under the lock.
        _ = last.withLock { last in
            defer { last = row }
            return last
        }
        return row
    }

    func change(_ body: (inout Value) -> Void) throws(StateError) {
        guard try query.update(id: id, { body(&$0) }) == nil else { return }
        throw StateError(.conflict, "row '\(id)' is gone: insert it again, or discard the change")
    }

    func replace(
        with value: Value,
        ifRevision revision: Revision?
    ) throws(StateError) -> Revision {
        let mutation = try replacement(with: value, ifRevision: revision)
        return Revision(epoch: query.keyspace.epoch, number: try query.keyspace.apply([mutation]))
    }

    nonisolated(nonsending) func replace(
        with value: Value,
        ifRevision revision: Revision?
    ) async throws(StateError) -> Revision {
        let mutation = try replacement(with: value, ifRevision: revision)
        let number = try await query.keyspace.apply([mutation])
        return Revision(epoch: query.keyspace.epoch, number: number)
    }

    private func replacement(
        with value: Value,
        ifRevision revision: Revision?
    ) throws(StateError) -> Mutation {
        guard let revision, revision.epoch == query.keyspace.epoch else {
            throw StateError(.conflict, "row '\(id)' was read from another store: read it again")
        }
        return .set(id, try query.bytes(of: value, id), ifRevision: revision.number)
    }
}

/// Ends the attempts to change a row that others change each time.
private struct RowPatience {
    private static var limit: Int { 1_000 }
    private var count = 0

    mutating func check(_ error: StateError) throws(StateError) {
        count += 1
        guard error.code == .conflict, count < RowPatience.limit else { throw error }
    }
}
