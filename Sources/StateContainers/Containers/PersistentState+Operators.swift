public import StateEngine

// In a task, the compiler prefers these to the operators of `State`, which would block a thread of
// the pool until the change is stored.

/// Replaces the value, and waits without blocking the thread: `try await volume ~> 0.7`.
///
/// - Returns: The revision of the commit.
/// - Throws: Why the change was refused; the value is unchanged.
@discardableResult
public nonisolated(nonsending) func ~> <Value>(
    state: PersistentState<Value>,
    newValue: Value
) async throws(StateError) -> Revision {
    try await state.set(newValue)
}

/// Changes the value in one step, and waits without blocking the thread: `try await count ~> { $0
/// += 1 }`.
///
/// - Returns: What `body` returned.
/// - Throws: Why the change was refused; the value is unchanged.
@discardableResult
public nonisolated(nonsending) func ~> <Value, R>(
    state: PersistentState<Value>,
    body: (inout Value) -> R
) async throws(StateError) -> R {
    try await state.modify(body)
}

/// Replaces a part of a stored value, and waits without blocking the thread.
///
/// - Returns: The revision of the commit.
/// - Throws: Why the change was refused; the value is unchanged.
@discardableResult
public nonisolated(nonsending) func ~> <Root, Field>(
    state: ScopedState<Root, Field, StateError>,
    newValue: Field
) async throws(StateError) -> Revision {
    try await state.set(newValue)
}

/// Changes a part of a stored value in one step, and waits without blocking the thread.
///
/// - Returns: What `body` returned.
/// - Throws: Why the change was refused; the value is unchanged.
@discardableResult
public nonisolated(nonsending) func ~> <Root, Field, R>(
    state: ScopedState<Root, Field, StateError>,
    body: (inout Field) -> R
) async throws(StateError) -> R {
    try await state.modify(body)
}
