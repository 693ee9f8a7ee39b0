public import StateEngine

extension PersistentState {
    // MARK: At another durability

    /// Replaces the value at the given durability; see ``StateContainer/set(_:)``.
    ///
    /// - Parameters:
    ///   - newValue: The value.
    ///   - durability: How safe the change is before the call returns. If it is less than
    ///     ``Durability/synced`` and the commit fails afterwards, the value reverts to what is
    ///     stored, and ``failures`` reports why.
    /// - Returns: The revision of the commit.
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public final func set(
        _ newValue: Value,
        durability: Durability
    ) throws(StateError) -> Revision {
        try stateErrors {
            try commit(Change(durability: durability, expiry: expiry)) { $0 = newValue }.revision
        }
    }

    /// Replaces the value at the given durability: `set`, by the name that the patterns use.
    @discardableResult
    public final func modify(
        _ newValue: Value,
        durability: Durability
    ) throws(StateError) -> Revision {
        try set(newValue, durability: durability)
    }

    /// Changes the value in one step; see ``StateContainer/modify(_:)-9cad6``.
    ///
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public final func modify<R>(
        durability: Durability,
        _ body: (inout Value) -> R
    ) throws(StateError) -> R {
        try stateErrors { try commit(Change(durability: durability, expiry: expiry), body).result }
    }

    /// Replaces the value even if what is stored cannot be read.
    ///
    /// It is the only write that overwrites such bytes.
    ///
    /// - Throws: Why the change was refused; nothing has changed.
    @discardableResult
    public final func overwrite(_ newValue: Value) throws(StateError) -> Revision {
        let change = Change(durability: durability, replaces: true, expiry: expiry)
        return try stateErrors { try commit(change) { $0 = newValue }.revision }
    }

    /// Replaces the value even if what is stored cannot be read: ``overwrite(_:)``.
    @discardableResult
    public final func replace(_ newValue: Value) throws(StateError) -> Revision {
        try overwrite(newValue)
    }

    // MARK: In tasks

    /// Replaces the value; see ``StateContainer/set(_:)``.
    ///
    /// If the task is cancelled, the change is made all the same.
    ///
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public nonisolated(nonsending) final func set(
        _ newValue: Value,
        durability: Durability? = nil
    ) async throws(StateError) -> Revision {
        try await commit(durability) { $0 = newValue }.revision
    }

    /// Replaces the value; see ``StateContainer/set(_:)``.
    ///
    /// If the task is cancelled, the change is made all the same.
    ///
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public nonisolated(nonsending) final func modify(
        _ newValue: Value,
        durability: Durability? = nil
    ) async throws(StateError) -> Revision {
        try await commit(durability) { $0 = newValue }.revision
    }

    /// Changes the value in one step; see ``StateContainer/modify(_:)-9cad6``.
    ///
    /// If the task is cancelled, the change is made all the same.
    ///
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public nonisolated(nonsending) final func modify<R>(
        durability: Durability? = nil,
        _ body: (inout Value) -> R
    ) async throws(StateError) -> R {
        try await commit(durability, body).result
    }

    /// Changes the value in one step; an error thrown in `body` changes nothing.
    ///
    /// If the task is cancelled, the change is made all the same: let `body` throw to refuse it.
    ///
    /// - Throws: What `body` threw, or why the change was refused; the value is unchanged.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) final func modify<R>(
        durability: Durability? = nil,
        _ body: (inout Value) throws -> R
    ) async throws -> R {
        let change = Change(durability: durability ?? self.durability, expiry: expiry)
        return try await persistent.commit(change, check: check, body).result
    }

    /// Replaces the value if nobody changed it since `expected`.
    ///
    /// - Throws: ``StateError/Code/conflict``, naming the current revision, or why the change was
    ///   refused; the value is unchanged.
    @discardableResult
    public nonisolated(nonsending) final func modify(
        _ newValue: Value,
        ifRevision expected: Revision
    ) async throws(StateError) -> Revision {
        try await commit(nil, expected: expected) { $0 = newValue }.revision
    }

    /// Replaces the value even if what is stored cannot be read; see the other form.
    ///
    /// - Throws: Why the change was refused; nothing has changed.
    @discardableResult
    public nonisolated(nonsending) final func overwrite(
        _ newValue: Value
    ) async throws(StateError) -> Revision {
        let change = Change(durability: durability, replaces: true, expiry: expiry)
        return try await commit(change) { $0 = newValue }.revision
    }

    /// Waits until storage has every change that was made before the call.
    ///
    /// - Throws: The error of the first of them that failed.
    public nonisolated(nonsending) final func flush() async throws(StateError) {
        try await persistent.flush()
    }

    private nonisolated(nonsending) final func commit<R>(
        _ durability: Durability?,
        expected: Revision? = nil,
        _ body: (inout Value) -> R
    ) async throws(StateError) -> (result: R, revision: Revision) {
        let change = Change(
            expected: expected,
            durability: durability ?? self.durability,
            expiry: expiry
        )
        return try await commit(change, body)
    }

    /// Makes a change whose body cannot throw.
    package nonisolated(nonsending) final func commit<R>(
        _ change: Change,
        _ body: (inout Value) -> R
    ) async throws(StateError) -> (result: R, revision: Revision) {
        do {
            return try await persistent.commit(change, check: check, body)
        } catch let error as StateError {
            throw error
        } catch {
            fatalError("state '\(key)' failed with an unexpected error: \(error)")
        }
    }
}
