public import StateEngine

extension LiveQuery {
    // MARK: Rows

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
        guard let bytes = try query.codec.adapted(to: keyspace).encode(value) else {
            throw StateError(.invalidRequest, "a row cannot be nil: delete '\(id)' instead")
        }
        return .set(id, bytes, ifRevision: 0)
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

/// Ends the attempts to change a row that others change each time.
private struct RowPatience {
    private static var limit: Int { 1_000 }
    private var count = 0

    mutating func check(_ error: StateError) throws(StateError) {
        count += 1
        guard error.code == .conflict, count < RowPatience.limit else { throw error }
    }
}
