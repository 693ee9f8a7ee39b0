public import CLinux
public import StateEngine

/// A value that many threads read and modify, each change in one step.
///
/// ```swift
/// let themeColor = State("blue", key: "themeColor")
/// themeColor ~> "green"
/// themeColor ~> { $0 += "ish" }
/// print(themeColor.value)
/// ```
///
/// In memory nothing can fail (`Failure` is `Never`); where a write can, `modify` throws ``StateError`` and everything is as it
/// was. A subclass overrides ``didModify(_:)`` and restates `@unchecked Sendable`, which obliges it to guard what it
/// adds.
///
/// What is stored is constant, and the core and the queue guard themselves: the proof of `@unchecked Sendable`.
open class State<Value: Sendable, Failure: Error>: @unchecked Sendable {
    /// Its name.
    public final let key: Key
    /// Outside of scopes.
    @usableFromInline final let ownCore: StateCore<Value>
    private final let ownRegistration: Registration<Value>
    /// With what it begins in a scope; nil where it is in a keyspace, which scopes do not divide.
    private final let scopedDefault: Value?
    /// Refuses a value; nil where every one is good.
    package final let check: StateCore<Value>.Check?

    /// A container in memory.
    ///
    /// - Parameters:
    ///   - defaultValue: What it holds until the first change.
    ///   - key: Its name in messages; another container of that key is another container.
    @_disfavoredOverload
    public init(_ defaultValue: Value, key: Key) where Failure == Never {
        self.key = key
        ownCore = .inMemory(defaultValue, key: key, isDirect: true)
        ownRegistration = Registration(ownCore, ChangeQueue())
        scopedDefault = .some(defaultValue)
        check = nil
        connect(ownRegistration)
    }

    /// A container in memory that refuses what `check` refuses.
    package init(
        _ defaultValue: Value,
        key: Key,
        check: @escaping @Sendable (Value) throws(StateError) -> Void
    ) throws(StateError) where Failure == StateError {
        try check(defaultValue)
        self.key = key
        ownCore = .inMemory(defaultValue, key: key, isDirect: false)
        ownRegistration = Registration(ownCore, ChangeQueue())
        scopedDefault = .some(defaultValue)
        self.check = check
        connect(ownRegistration)
    }

    /// A container whose value is in a keyspace.
    package init(
        core: StateCore<Value>,
        check: StateCore<Value>.Check?
    ) where Failure == StateError {
        key = core.key
        ownCore = core
        ownRegistration = Registration(ownCore, ChangeQueue())
        scopedDefault = nil
        self.check = check
        connect(ownRegistration)
    }

    deinit { ownCore.unregister(ownRegistration.queue) }

    // MARK: Reading

    /// The value.
    ///
    /// - Complexity: O(1): a lock and a copy.
    @inlinable public final var value: Value { withCore { $0.read() } }

    /// The value and the commit that made it.
    public final var versioned: (value: Value, revision: Revision) { core.versioned }

    /// Reads the value in place, without a copy; no other thread reads or writes it meanwhile.
    ///
    /// The body may touch no container: that ends the process with both keys.
    @inlinable
    public final func withValue<R, E: Error>(
        _ body: (borrowing Value) throws(E) -> R
    ) throws(E) -> R {
        try withCore { (core) throws(E) in try core.read(body) }
    }

    // MARK: Telling

    /// Called once for each change that this container takes, ascending, never while it runs, with no lock held.
    ///
    /// An override calls super.
    open func didModify(_ change: StateChange<Value>) {}

    /// The class of the library that this is, where it is one; a subclass of the reader's own may override `didModify`.
    package class var libraryClass: AnyClass { State<Value, Failure>.self }

    /// Whether nobody but the library says what `didModify` does.
    package final var isOfLibrary: Bool {
        type(of: self) == Self.libraryClass || self is any FinalContainer
    }

    private final func connect(_ registration: Registration<Value>) {
        registration.queue.connect(key) { [weak self] change in
            guard let self else { return }
            StateTrace.note(.change(key, change.facts.revision))
            didModify(StateChange(change))
        }
        if !isOfLibrary { registration.core.register(registration.queue) }
    }

    // MARK: Where it is

    @inlinable
    final var core: StateCore<Value> { clinux_has_scopes() == 0 ? ownCore : registration.core }

    /// Runs `body` with the core.
    ///
    /// Where ``core`` returns it, it is retained and released: two atomic operations beside the two of the lock.
    @inlinable
    final func withCore<R, E: Error>(_ body: (StateCore<Value>) throws(E) -> R) throws(E) -> R {
        if clinux_has_scopes() == 0 { return try body(ownCore) }
        return try body(registration.core)
    }

    /// Its core and queue in the scope of the calling task.
    @usableFromInline
    package final var registration: Registration<Value> {
        guard let scopedDefault, let scope = StateScope.current else { return ownRegistration }
        return scope.registration(of: self) {
            let core = StateCore.inMemory(scopedDefault, key: key, isDirect: ownCore.isDirect)
            let registration = Registration(core, ChangeQueue(scope: scope))
            connect(registration)
            return registration
        }
    }

    // MARK: Changing

    /// A change that may be refused, or of which somebody is told; overridden where the value is in a keyspace.
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

    /// What is asked of a change of which the caller does not say more.
    package var plainChange: Change { Change() }

    /// Takes an error that no caller can be given.
    package func note(_ error: any Error) {
        guard (error as? StateError)?.code != .feedbackLoop else { fatalError("\(error)") }
    }
}

/// A container of the library that nobody can subclass: its `didModify` is the library's.
package protocol FinalContainer {}
