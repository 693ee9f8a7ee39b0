public import StateEngine

/// An editable copy of a container's value that may be invalid until ``commit()``.
///
/// ```swift
/// var draft = Draft(of: profile)
/// draft.mail = "ada"
/// draft.issues(at: "mail")    // [mail: 'ada' is not an e-mail address]
/// draft.mail = "ada@example.org"
/// try draft.commit()
/// ```
@dynamicMemberLookup
public struct Draft<Value: Validatable & Sendable>: Sendable {
    /// Reads the value and its revision.
    public typealias Read = @Sendable () -> (value: Value, revision: Revision)
    /// Replaces the value if its revision is still the given one; returns the new revision.
    public typealias CompareAndSet = @Sendable (Value, Revision) throws(StateError) -> Revision

    /// The edited value.
    public var value: Value
    /// The revision that the draft is based on, or that its commit made.
    public private(set) var revision: Revision
    private let read: Read
    private let compareAndSet: CompareAndSet

    /// Makes a draft of a value that the closures read and commit.
    public init(reading read: @escaping Read, committing compareAndSet: @escaping CompareAndSet) {
        self.read = read
        self.compareAndSet = compareAndSet
        (value, revision) = read()
    }

    /// Makes a draft of the value of `state`.
    public init<Failure: Error>(of state: StateContainer<Value, Failure>) {
        self.init {
            state.versioned
        } committing: { (value, revision) throws(StateError) in
            try state.modify(value, ifRevision: revision)
        }
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
    /// since it was read.
    ///
    /// - Returns: The revision of the commit.
    /// - Throws: ``StateError/Code/rejected``, with the issues. ``StateError/Code/conflict`` if the
    ///   container has changed: call ``rebase()`` or ``revert()`` then. Otherwise why the container
    ///   refused the value. Container and draft are unchanged.
    @discardableResult
    public mutating func commit() throws(StateError) -> Revision {
        try value.requireValid()
        revision = try compareAndSet(value, revision)
        return revision
    }

    /// Keeps the edits, but bases them on the container's current value, which the next commit
    /// replaces.
    ///
    /// - Returns: The value that the next commit would replace.
    @discardableResult
    public mutating func rebase() -> Value {
        let (current, revision) = read()
        self.revision = revision
        return current
    }

    /// Discards the edits and starts again with the container's current value.
    public mutating func revert() { (value, revision) = read() }
}
