public import StateEngine

/// An editable copy of a value that may be invalid until ``commit()``: of a container, or of an item
/// that is yet to be made.
///
/// ```swift
/// var draft = Draft(of: profile)
/// draft.mail = "ada"
/// draft.issues(at: "mail")    // [mail: 'ada' is not an e-mail address]
/// draft.mail = "ada@example.org"
/// try draft.commit()
/// ```
///
/// In a task, `try await draft.commit()` does not block a thread.
@dynamicMemberLookup
public struct Draft<Value: Validatable & Sendable>: Sendable {
    /// The edited value.
    public var value: Value
    /// The revision that the draft is based on, or that its commit made; nil for an item that is yet
    /// to be made.
    public private(set) var revision: Revision?
    private let place: Place

    /// Where the value is, or will be.
    struct Place: Sendable {
        var read: @Sendable () -> (value: Value, revision: Revision?)
        var commit: @Sendable (Value, Revision?) throws(StateError) -> Revision?
        var commitInTask: @Sendable (Value, Revision?) async throws(StateError) -> Revision?
    }

    init(at place: Place) {
        self.place = place
        (value, revision) = place.read()
    }

    /// Makes a draft of the value of `state`.
    public init<Failure: Error>(of state: StateContainer<Value, Failure>) {
        self.init(
            at: Place {
                state.versioned
            } commit: { (value, revision) throws(StateError) in
                try state.replace(value, ifRevision: revision)
            } commitInTask: { (value, revision) async throws(StateError) in
                try await state.replace(value, ifRevision: revision)
            }
        )
    }

    /// Makes a draft of a new item.
    ///
    /// ```swift
    /// var draft = Draft(new: Account()) { account in try register(account) }
    /// ```
    ///
    /// - Parameters:
    ///   - value: The item to begin with, valid or not.
    ///   - insert: Stores the item when the draft is committed; what it throws, the commit throws. In
    ///     a task it runs on the task's thread: for rows of a query, name the query instead.
    public init(
        new value: Value,
        committing insert: @escaping @Sendable (Value) throws(StateError) -> Void
    ) {
        self.init(
            at: Place {
                (value, nil)
            } commit: { (value, _) throws(StateError) in
                try insert(value)
                return nil
            } commitInTask: { (value, _) throws(StateError) in
                try insert(value)
                return nil
            }
        )
    }

    /// A part of the value.
    public subscript<Part>(dynamicMember path: WritableKeyPath<Value, Part>) -> Part {
        get { value[keyPath: path] }
        set { value[keyPath: path] = newValue }
    }

    /// Whether the value may be committed.
    public var isValid: Bool { issues.isEmpty }

    /// The issues of the value.
    public var issues: [ValidationIssue] { value.validate() }

    /// The issues of the part at `path`, and of the parts below it: `address/city`.
    public func issues(at path: String) -> [ValidationIssue] {
        issues.filter { $0.path == path || path.isEmpty || $0.path.hasPrefix("\(path)/") }
    }

    /// Replaces the container's value with this one, if it is valid and the container is unchanged
    /// since it was read; stores a new item.
    ///
    /// It blocks the thread if the value is stored; the form for tasks does not.
    ///
    /// - Returns: The revision of the commit; nil for a new item.
    /// - Throws: ``StateError/Code/rejected``, with the issues. ``StateError/Code/conflict`` if the
    ///   container has changed: call ``rebase()`` or ``revert()`` then. Otherwise why the container
    ///   refused the value. Container and draft are unchanged.
    @discardableResult
    public mutating func commit() throws(StateError) -> Revision? {
        try value.requireValid()
        revision = try place.commit(value, revision)
        return revision
    }

    /// The same in a task, without blocking a thread.
    ///
    /// The compiler takes this form in an `async` function. A draft that is a property of an actor is
    /// committed as a copy, which is then assigned, because other code may use the property while this
    /// waits.
    @discardableResult
    public nonisolated(nonsending) mutating func commit() async throws(StateError) -> Revision? {
        try value.requireValid()
        revision = try await place.commitInTask(value, revision)
        return revision
    }

    /// Keeps the edits, but bases them on the container's current value, which the next commit
    /// replaces.
    ///
    /// - Returns: The value that the next commit would replace; for a new item, that with which the
    ///   draft began.
    @discardableResult
    public mutating func rebase() -> Value {
        let (current, revision) = place.read()
        self.revision = revision
        return current
    }

    /// Discards the edits and starts again with the container's current value; for a new item, with
    /// that with which the draft began.
    public mutating func revert() { (value, revision) = place.read() }
}

extension Draft where Value: Codable {
    /// Makes a draft of a new row of a query; its commit inserts the row.
    ///
    /// - Parameters:
    ///   - value: The row to begin with, valid or not.
    ///   - rows: The query. If it has a row with this key when the draft is committed, that throws
    ///     ``StateError/Code/conflict``.
    ///   - id: The key of the row.
    public init(new value: Value, in rows: LiveQuery<Value>, id: Key) {
        self.init(
            at: Place {
                (value, nil)
            } commit: { (value, _) throws(StateError) in
                try rows.insert(value, id: id)
                return nil
            } commitInTask: { (value, _) async throws(StateError) in
                try await rows.insert(value, id: id)
                return nil
            }
        )
    }
}

extension StateContainer {
    /// Replaces the value if nobody changed it since `expected`, which is not nil.
    fileprivate final func replace(
        _ value: Value,
        ifRevision expected: Revision?
    ) throws(StateError) -> Revision {
        try stateErrors { try commit(plainChange.expecting(expected)) { $0 = value }.revision }
    }

    /// The same in a task, without blocking a thread.
    fileprivate nonisolated(nonsending) final func replace(
        _ value: Value,
        ifRevision expected: Revision?
    ) async throws(StateError) -> Revision {
        do {
            return try await commitInTask(plainChange.expecting(expected)) { $0 = value }.revision
        } catch {
            return try stateErrors { throw error }
        }
    }
}
