public import CLinux
public import StateEngine

/// A value that many threads read and modify; each change is one step.
///
/// ```swift
/// let themeColor = State("blue", key: "themeColor")
/// themeColor ~> "green"
/// themeColor ~> { $0 += "ish" }
/// print(themeColor.value)
/// ```
///
/// In memory nothing can fail: that is a ``State``. Otherwise `modify` can throw a ``StateError``,
/// and the value is unchanged. A subclass overrides ``didModify(_:)`` and restates `@unchecked
/// Sendable`, which obliges it to guard the state that it adds.
///
/// Stored properties are constant, and the core and the queue guard themselves: the proof of
/// `@unchecked Sendable`.
open class StateContainer<Value: Sendable, Failure: Error>: @unchecked Sendable {
    /// Its name.
    public final let key: Key
    /// The core outside of scopes.
    @usableFromInline final let ownCore: StateCore<Value>
    private final let ownRegistration: Registration<Value>
    /// Whether the core is found at the first use, outside of scopes too; ``ownCore`` is then never
    /// used.
    @usableFromInline package final let isLate: Bool
    /// The initial value in a scope; nil if the value is not in memory.
    private final let initial: InitialValue<Value>?
    /// Throws for values to refuse; nil accepts every value.
    package final let check: StateCore<Value>.Check?

    /// Makes a container in memory.
    ///
    /// - Parameters:
    ///   - defaultValue: The value until the first change.
    ///   - key: The name in messages; containers with the same key are independent.
    @_disfavoredOverload
    public init(_ defaultValue: Value, key: Key) where Failure == Never {
        self.key = key
        isLate = false
        initial = InitialValue(defaultValue)
        ownCore = .inMemory(
            defaultValue,
            key: key,
            isDirect: true,
            isTracked: false,
            initial: initial
        )
        ownRegistration = Registration(ownCore, ChangeQueue())
        check = nil
        connect(ownRegistration)
    }

    /// Makes a container in memory whose reads the Observation library tracks, and which refuses the
    /// values for which `check` throws.
    package init(trackedInMemory defaultValue: Value, key: Key, check: StateCore<Value>.Check?) {
        self.key = key
        isLate = false
        initial = InitialValue(defaultValue)
        ownCore = .inMemory(
            defaultValue,
            key: key,
            isDirect: check == nil,
            isTracked: true,
            initial: initial
        )
        ownRegistration = Registration(ownCore, ChangeQueue())
        self.check = check
        connect(ownRegistration)
    }

    /// Makes a container whose value is in a keyspace, or a part of another value.
    ///
    /// If `isLate`, that place is found at the first use, and `core` only stands for it.
    package init(core: StateCore<Value>, check: StateCore<Value>.Check?, isLate: Bool = false) {
        key = core.key
        ownCore = core
        ownRegistration = Registration(ownCore, ChangeQueue())
        self.isLate = isLate
        initial = nil
        self.check = check
        if !isLate { connect(ownRegistration) }
    }

    deinit { ownCore.unregister(ownRegistration.queue) }

    // MARK: Reading

    /// The value.
    ///
    /// It has no setter, because `value += 1` by two threads would lose one of the changes.
    ///
    /// - Complexity: O(1): a lock and a copy.
    public final var value: Value {
        @inlinable get { withCore { $0.read() } }
        @available(
            *,
            unavailable,
            message: "use set(_:), or modify { $0 += 1 } for a change in one step"
        )
        // For key paths, which the compiler cannot refuse.
        set { replaceOrNote(newValue) }
    }

    /// The value and the revision of its commit.
    public final var versioned: (value: Value, revision: Revision) { core.versioned }

    /// Reads the value in place, without a copy.
    ///
    /// No other thread reads or writes it meanwhile.
    ///
    /// `body` must not use any container: that ends the process, with a message that names both
    /// keys.
    @inlinable
    public final func withValue<R, E: Error>(
        _ body: (borrowing Value) throws(E) -> R
    ) throws(E) -> R {
        try withCore { (core) throws(E) in try core.read(body) }
    }

    // MARK: Publishing

    /// Called once for each change that this container takes, in ascending order, one call at a
    /// time, with no lock held.
    ///
    /// An override must call super.
    open func didModify(_ change: StateChange<Value>) {}

    /// The library's class that this is; a subclass outside of the library may override
    /// `didModify`.
    package class var libraryClass: AnyClass { StateContainer<Value, Failure>.self }

    /// Whether only the library defines what `didModify` does.
    package final var isOfLibrary: Bool {
        if type(of: self) == Self.libraryClass { return true }
        guard let container = self as? any LibraryContainer else { return false }
        return type(of: self) == type(of: container).ownClass
    }

    package final func connect(_ registration: Registration<Value>) {
        guard isOfLibrary else {
            registration.queue.connect(key) { [weak self] change in
                guard let self else { return }
                StateTrace.note(.change(key, change.facts.revision))
                didModify(StateChange(change))
            }
            return registration.core.register(registration.queue)
        }
        // As its `didModify` does, without the two atomic operations of a weak reference.
        let listeners = registration.queue.listeners
        registration.queue.connect(key) { [weak self, key] in
            StateTrace.note(.change(key, $0.facts.revision))
            if listeners.deliver($0) { self?.removeGoneReceivers() }
        }
    }

    /// Removes the receivers whose target no longer exists, if the container has receivers.
    package func removeGoneReceivers() {}

    // MARK: Scopes

    @inlinable
    final var core: StateCore<Value> {
        clinux_has_scopes() == 0 && !isLate ? ownCore : registration.core
    }

    /// Runs `body` with the core.
    ///
    /// Returning ``core`` would retain and release it: two atomic operations beside the two of the
    /// lock.
    @inlinable
    final func withCore<R, E: Error>(_ body: (StateCore<Value>) throws(E) -> R) throws(E) -> R {
        if clinux_has_scopes() == 0, !isLate { return try body(ownCore) }
        return try body(registration.core)
    }

    /// The core and queue in the scope of the calling task.
    @usableFromInline
    package final var registration: Registration<Value> {
        guard clinux_has_scopes() != 0, isDivided, let scope = StateScope.current else {
            return outerRegistration
        }
        return scope.registration(of: self) {
            let registration = Registration(makeCore(in: scope), ChangeQueue(scope: scope))
            connect(registration)
            return registration
        }
    }

    /// The core and queue outside of scopes.
    package var outerRegistration: Registration<Value> { ownRegistration }

    /// Whether each scope has a value of its own.
    package var isDivided: Bool { initial != nil }

    /// Makes the core of a scope.
    package func makeCore(in scope: StateScope) -> StateCore<Value> {
        guard let initial else { preconditionFailure("state '\(key)' is not divided") }
        guard let value = ownCore.published.withLock({ _ in initial.value }) else {
            fatalError(
                "state '\(key)' was changed before the first StateScope, and its initial value is "
                    + "gone: call StateScope.expect() at the start of the program"
            )
        }
        return .inMemory(
            value,
            key: key,
            isDirect: ownCore.isDirect,
            isTracked: ownCore.isTracked
        )
    }

    // MARK: Changing

    /// A change that may be refused or has observers; overridden for a value in a keyspace.
    package func commit<R>(
        _ change: Change,
        _ body: (inout Value) throws -> R
    ) throws -> (result: R, revision: Revision) {
        try Feedback.check(key)
        return try core.modifyPublished(reason: change.reason) { current throws in
            try current.check(isExpected: change.expected, of: key)
        } _: { value throws in
            let result = try body(&value)
            try check?(value)
            return result
        }
    }

    /// The same, for a task: waits without blocking a thread.
    package nonisolated(nonsending) func commitInTask<R>(
        _ change: Change,
        _ body: (inout Value) throws -> R
    ) async throws -> (result: R, revision: Revision) {
        try commit(change, body)
    }

    /// The parameters of a change whose caller gives none.
    package var plainChange: Change { Change() }

    /// Records an error that cannot be thrown to a caller.
    package func note(_ error: any Error) {
        guard (error as? StateError)?.code != .feedbackLoop else { fatalError("\(error)") }
    }

    /// Replaces the value; an error is recorded, because it cannot be thrown.
    package final func replaceOrNote(_ newValue: Value) {
        do { try set(newValue) } catch { note(error) }
    }

    // MARK: In transactions

    /// The value in a transaction.
    package func read(in transaction: inout StateTransaction) -> Value {
        transaction.entry(of: self).value
    }

    /// Changes the value in a transaction.
    package func write(_ newValue: Value, in transaction: inout StateTransaction) {
        let entry = transaction.entry(of: self)
        entry.value = newValue
        entry.isWritten = true
    }
}

/// A container in memory: changing it never fails.
///
/// ```swift
/// let themeColor = State("blue", key: "themeColor")
/// let rating = State<Int?>(nil, key: "rating")
/// ```
public typealias State<Value: Sendable> = StateContainer<Value, Never>

/// A container class of the library in another module, which cannot override ``libraryClass``.
package protocol LibraryContainer: AnyObject {
    /// The class of the library.
    static var ownClass: AnyClass { get }
}
