public import Observation
public import StateEngine

/// One part of a container's value, as a container.
///
/// Its observers and streams wake only when the part changes, and reading its `value` is noted for
/// the Observation library. A change of it is a change of the container. It retains the container;
/// keep it as long as listeners are attached to it.
///
/// ```swift
/// let fontSize = preferences.scope(\.fontSize)
/// fontSize ~> 14
/// ```
public final class ScopedState<Root: Sendable, Field: Equatable & Sendable, Failure: Error>:
    MonitoredContainer<Field, Failure>, Observable, @unchecked Sendable
{
    // Constant, or under the lock: the proof of `@unchecked Sendable`.
    /// The container.
    public let state: MonitoredContainer<Root, Failure>
    private let path: any WritableKeyPath<Root, Field> & Sendable
    /// The core and queue outside of scopes, if the container was made in one.
    private let outer = LateRegistration<Field>()

    init(
        _ state: MonitoredContainer<Root, Failure>,
        _ path: any WritableKeyPath<Root, Field> & Sendable
    ) {
        self.state = state
        self.path = path
        super.init(
            core: PartCore(of: state.ownCore, at: path),
            check: nil,
            isLate: state.isLate
        )
    }

    package override class var libraryClass: AnyClass { ScopedState<Root, Field, Failure>.self }

    package override var isDivided: Bool { state.isDivided }

    package override func makeCore(in scope: StateScope) -> StateCore<Field> {
        PartCore(of: state.registration.core, at: path)
    }

    package override var outerRegistration: Registration<Field> {
        let whole = state.outerRegistration.core
        if whole === state.ownCore { return super.outerRegistration }
        return outer.registration(of: self) { PartCore(of: whole, at: path) }
    }

    // MARK: Changing

    package override func commit<R>(
        _ change: Change,
        _ body: (inout Field) throws -> R
    ) throws -> (result: R, revision: Revision) {
        let part = part(for: change)
        return try state.commit(change.expecting(nil)) { whole in
            try part.check(change, whole[keyPath: path])
            return try body(&whole[keyPath: path])
        }
    }

    package nonisolated(nonsending) override func commitInTask<R>(
        _ change: Change,
        _ body: (inout Field) throws -> R
    ) async throws -> (result: R, revision: Revision) {
        let part = part(for: change)
        return try await state.commitInTask(change.expecting(nil)) { whole in
            try part.check(change, whole[keyPath: path])
            return try body(&whole[keyPath: path])
        }
    }

    /// The core, which knows the part's revisions if the change needs them.
    private func part(for change: Change) -> StateCore<Field> {
        let core = core
        core.checkBody()
        if change.expected != nil { (core as? PartCore<Root, Field>)?.keepFollowing() }
        return core
    }

    package override var plainChange: Change { state.plainChange }

    package override func note(_ error: any Error) { state.note(error) }

    package override func read(in transaction: inout StateTransaction) -> Field {
        state.read(in: &transaction)[keyPath: path]
    }

    package override func write(_ newValue: Field, in transaction: inout StateTransaction) {
        var whole = state.read(in: &transaction)
        whole[keyPath: path] = newValue
        state.write(whole, in: &transaction)
    }
}

extension StateCore where Value: Equatable {
    /// - Throws: ``StateError/Code/conflict`` if `current`, of which the change is to be made, is
    ///   not the value at the revision that it expects.
    fileprivate func check(_ change: Change, _ current: Value) throws(StateError) {
        guard let expected = change.expected else { return }
        // Under the lock of the whole: no other change is made meanwhile.
        let (value, revision) = published.withLock { ($0.value, $0.revision) }
        try revision.check(isExpected: expected, of: key)
        guard value == current else {
            throw StateError(.conflict, "key '\(key)' has a newer value than that of \(expected)")
        }
    }
}

// MARK: - Parts

extension MonitoredContainer {
    /// The part of the value at `path`, as a container of its own; accessors in `path` must not use
    /// any container.
    public final func scope<Field: Equatable & Sendable>(
        _ path: any WritableKeyPath<Value, Field> & Sendable
    ) -> ScopedState<Value, Field, Failure> {
        ScopedState(self, path)
    }

    /// A part of an Optional value: nil if the value is nil.
    ///
    /// While the value is nil, or if the new part is nil, setting the part changes nothing.
    public final func scope<Wrapped: Sendable, Field: Equatable & Sendable>(
        _ path: any WritableKeyPath<Wrapped, Field> & Sendable
    ) -> ScopedState<Value, Field?, Failure> where Value == Wrapped? {
        ScopedState(self, \.[part: path])
    }

    /// An Optional value as one that is never nil: `fallback` while it is nil.
    ///
    /// Each change of it stores a value.
    public final func scope<Wrapped: Equatable & Sendable>(
        or fallback: Wrapped
    ) -> ScopedState<Value, Wrapped, Failure> where Value == Wrapped? {
        ScopedState(self, \.[or: Fallback(fallback)])
    }

    /// The element of a collection with this id: nil if there is none.
    ///
    /// Setting it to nil removes the element; setting an element appends it if there is none.
    ///
    /// - Complexity: O(*n*) in the elements, for each change of the collection too.
    public final func scope<Element: Identifiable & Equatable & Sendable>(
        id: Element.ID
    ) -> ScopedState<Value, Element?, Failure>
    where Value == [Element], Element.ID: Sendable {
        ScopedState(self, \.[element: id])
    }

    /// The value of a dictionary under this key: nil if there is none.
    ///
    /// Setting it to nil removes it.
    public final func scope<Name: Hashable & Sendable, Element: Equatable & Sendable>(
        key: Name
    ) -> ScopedState<Value, Element?, Failure> where Value == [Name: Element] {
        ScopedState(self, \.[key])
    }
}

/// A value as an argument of a key path; two are equal if they are the same object.
private final class Fallback<Value: Sendable>: Hashable, Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }

    static func == (left: Fallback, right: Fallback) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { ObjectIdentifier(self).hash(into: &hasher) }
}

extension Optional where Wrapped: Sendable {
    fileprivate subscript<Part>(part path: any WritableKeyPath<Wrapped, Part> & Sendable) -> Part? {
        get { self?[keyPath: path] }
        set { if let newValue { self?[keyPath: path] = newValue } }
    }

    fileprivate subscript(or fallback: Fallback<Wrapped>) -> Wrapped {
        get { self ?? fallback.value }
        set { self = newValue }
    }
}

extension Array where Element: Identifiable {
    fileprivate subscript(element id: Element.ID) -> Element? {
        get { first { $0.id == id } }
        set {
            switch (firstIndex { $0.id == id }, newValue) {
            case (let place?, let element?): self[place] = element
            case (let place?, nil): remove(at: place)
            case (nil, let element?): append(element)
            case (nil, nil): break
            }
        }
    }
}

// MARK: - In tasks

extension ScopedState where Failure == StateError {
    /// Replaces the part, and waits without blocking the thread.
    ///
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public nonisolated(nonsending) func set(
        _ newValue: Field
    ) async throws(StateError) -> Revision {
        try await inTask { $0 = newValue }.revision
    }

    /// Changes the part in one step, and waits without blocking the thread.
    ///
    /// - Throws: Why the change was refused; the value is unchanged.
    @discardableResult
    public nonisolated(nonsending) func modify<R>(
        _ body: (inout Field) -> R
    ) async throws(StateError) -> R {
        try await inTask(body).result
    }

    private nonisolated(nonsending) func inTask<R>(
        _ body: (inout Field) -> R
    ) async throws(StateError) -> (result: R, revision: Revision) {
        do {
            return try await commitInTask(plainChange, body)
        } catch {
            return try stateErrors { throw error }
        }
    }
}
