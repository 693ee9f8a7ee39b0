public import StateEngine

extension State {
    /// Replaces the value.
    ///
    /// - Returns: The commit; every thread reads it, or a later one.
    /// - Throws: Why it was refused; the value is as it was.
    @inlinable
    @discardableResult
    public final func modify(_ newValue: Value) throws(Failure) -> Revision {
        try change { $0 = newValue }.revision
    }

    /// Changes the value in one step.
    ///
    /// The body may touch no container, not even this one: that ends the process with both keys. Where the value is shared with
    /// other processes it may run several times, so it only computes.
    ///
    /// - Returns: What `body` returned.
    /// - Throws: Why it was refused; the value is as it was.
    @inlinable
    @discardableResult
    public final func modify<R>(_ body: (inout Value) -> R) throws(Failure) -> R {
        try change(body).result
    }

    /// Replaces the value if nobody changed it since `expected`.
    ///
    /// - Throws: ``StateError/Code/conflict``, naming the current revision, or why it was refused; the value is as it was.
    @discardableResult
    public final func modify(
        _ newValue: Value,
        ifRevision expected: Revision
    ) throws(StateError) -> Revision {
        try stateErrors { try commit(plainChange.expecting(expected)) { $0 = newValue }.revision }
    }

    /// Says that a value that locks itself has changed: who is told of changes is told of it once more.
    public final func touch() {
        do { _ = try commit(plainChange) { _ in } } catch { note(error) }
    }

    @inlinable
    final func change<R>(
        _ body: (inout Value) -> R
    ) throws(Failure) -> (result: R, revision: Revision) {
        if let done = withCore({ $0.isDirect ? $0.modifyUntold(body) : nil }) { return done }
        return try change(because: String(), body)
    }

    /// The same with a reason, which ``StateChange/cause`` names where somebody is told.
    @usableFromInline
    package final func change<R>(
        because reason: @autoclosure () -> String,
        _ body: (inout Value) -> R
    ) throws(Failure) -> (result: R, revision: Revision) {
        if let done = withCore({ $0.isDirect ? $0.modifyUntold(body) : nil }) { return done }
        do {
            return try commit(plainChange.because(reason()), body)
        } catch let error as Failure {
            throw error
        } catch {
            // In memory the only one is a feedback loop.
            fatalError("\(error)")
        }
    }

    /// Runs what can only throw a ``StateError``.
    final func stateErrors<R>(_ body: () throws -> R) throws(StateError) -> R {
        do {
            return try body()
        } catch let error as StateError {
            throw error
        } catch {
            fatalError("state '\(key)' failed with what it cannot fail with: \(error)")
        }
    }
}

extension State {
    /// Changes the value in one step; an error thrown in `body` changes nothing.
    ///
    /// - Throws: What `body` threw, or why the change was refused; the value is as it was.
    /// - Complexity: A copy of the value, to take its change back.
    @discardableResult
    @_disfavoredOverload
    public final func modify<R>(_ body: (inout Value) throws -> R) throws -> R {
        try commit(plainChange, body).result
    }
}

/// What is asked of a change beside its body.
@usableFromInline
package struct Change: Sendable {
    /// What moved the writer; ``StateChange/cause`` names it.
    var reason = ""
    /// Only where nobody changed the value since.
    var expected: Revision?
    /// How safe the change is before its writer goes on; in memory it does not matter.
    var durability = Durability.synced
    /// Whether what is stored does not matter, not even whether it can be read.
    var replaces = false

    func because(_ reason: String) -> Change {
        var change = self
        change.reason = reason
        return change
    }

    func expecting(_ revision: Revision) -> Change {
        var change = self
        change.expected = revision
        return change
    }
}

/// Replaces the value: `volume ~> 0.7`, with parentheses around an operator's result.
@inlinable
@discardableResult
public func ~> <Value, Failure>(
    state: State<Value, Failure>,
    newValue: Value
) throws(Failure) -> Revision {
    try state.modify(newValue)
}

/// Changes the value in one step: `counter ~> { $0 += 1 }`.
@inlinable
@discardableResult
public func ~> <Value, Failure, R>(
    state: State<Value, Failure>,
    body: (inout Value) -> R
) throws(Failure) -> R {
    try state.modify(body)
}
