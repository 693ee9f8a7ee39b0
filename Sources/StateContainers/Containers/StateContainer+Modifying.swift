public import StateEngine

extension StateContainer {
    /// Replaces the value.
    ///
    /// - Returns: The revision of the commit; every thread now reads it, or a later one.
    /// - Throws: Why the change was refused; the value is unchanged.
    @inlinable
    @discardableResult
    public final func set(_ newValue: Value) throws(Failure) -> Revision {
        try change { $0 = newValue }.revision
    }

    /// Replaces the value: ``set(_:)``, by the name that the patterns use.
    @inlinable
    @discardableResult
    public final func modify(_ newValue: Value) throws(Failure) -> Revision { try set(newValue) }

    /// Changes the value in one step.
    ///
    /// `body` must not use any container, not even this one: that ends the process, with a message
    /// that names both keys. If other processes share the value, `body` may run several times, so
    /// it must have no side effects.
    ///
    /// - Returns: What `body` returned.
    /// - Throws: Why the change was refused; the value is unchanged.
    @inlinable
    @discardableResult
    public final func modify<R>(_ body: (inout Value) -> R) throws(Failure) -> R {
        try change(body).result
    }

    /// Replaces the value if nobody changed it since `expected`.
    ///
    /// - Throws: ``StateError/Code/conflict``, naming the current revision, or why the change was
    ///   refused; the value is unchanged.
    @discardableResult
    public final func modify(
        _ newValue: Value,
        ifRevision expected: Revision
    ) throws(StateError) -> Revision {
        try stateErrors { try commit(plainChange.expecting(expected)) { $0 = newValue }.revision }
    }

    /// Publishes the same value again, for a value that changes inside (a class that locks itself).
    public final func touch() {
        do { _ = try commit(plainChange) { _ in } } catch { note(error) }
    }

    @inlinable
    final func change<R>(
        _ body: (inout Value) -> R
    ) throws(Failure) -> (result: R, revision: Revision) {
        let done = withCore { core in
            core.isDirect ? core.modifyInPlace(body) ?? core.modifyObserved(body) : nil
        }
        if let done { return done }
        return try change(because: String(), body)
    }

    /// The same with a reason; observers find it in ``StateChange/cause``.
    @usableFromInline
    package final func change<R>(
        because reason: @autoclosure () -> String,
        _ body: (inout Value) -> R
    ) throws(Failure) -> (result: R, revision: Revision) {
        if let done = withCore({ $0.isDirect ? $0.modifyInPlace(body) : nil }) { return done }
        do {
            return try commit(plainChange.because(reason()), body)
        } catch let error as Failure {
            throw error
        } catch {
            // In memory the only such error is a feedback loop.
            fatalError("\(error)")
        }
    }

    /// Runs a body that can only throw a ``StateError``.
    package final func stateErrors<R>(_ body: () throws -> R) throws(StateError) -> R {
        do {
            return try body()
        } catch let error as StateError {
            throw error
        } catch {
            fatalError("state '\(key)' failed with an unexpected error: \(error)")
        }
    }
}

extension StateContainer {
    /// Changes the value in one step; an error thrown in `body` changes nothing.
    ///
    /// - Throws: What `body` threw, or why the change was refused; the value is unchanged.
    /// - Complexity: A copy of the value, to revert its change.
    @discardableResult
    @_disfavoredOverload
    public final func modify<R>(_ body: (inout Value) throws -> R) throws -> R {
        try commit(plainChange, body).result
    }
}

/// The parameters of a change, apart from its body.
@usableFromInline
package struct Change: Sendable {
    /// Why the writer made the change; reported in ``StateChange/cause``.
    var reason = ""
    /// If set, the change requires that the value is still at this revision.
    var expected: Revision?
    /// How safe the change is before the call returns; ignored in memory.
    var durability = Durability.synced
    /// Whether to overwrite what is stored, even if it cannot be read.
    var replaces = false
    /// When the value ends by itself; ignored in memory.
    package var expiry = Expiry.ruled

    func because(_ reason: String) -> Change {
        var change = self
        change.reason = reason
        return change
    }

    func expecting(_ revision: Revision?) -> Change {
        var change = self
        change.expected = revision
        return change
    }
}

/// Replaces the value: `volume ~> 0.7`, with parentheses around an operator's result.
@inlinable
@discardableResult
public func ~> <Value, Failure>(
    state: StateContainer<Value, Failure>,
    newValue: Value
) throws(Failure) -> Revision {
    try state.set(newValue)
}

/// Changes the value in one step: `counter ~> { $0 += 1 }`.
@inlinable
@discardableResult
public func ~> <Value, Failure, R>(
    state: StateContainer<Value, Failure>,
    body: (inout Value) -> R
) throws(Failure) -> R {
    try state.modify(body)
}
