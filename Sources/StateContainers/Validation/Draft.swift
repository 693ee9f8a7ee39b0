public import StateEngine

/// A form that is being filled in: a copy of a container's value that may be bad until it is committed.
///
/// ```swift
/// var draft = Draft(of: profile)
/// draft.mail = "ada"
/// draft.issues(at: "mail")    // [mail: 'ada' is no e-mail address]
/// draft.mail = "ada@example.org"
/// try draft.commit()
/// ```
@dynamicMemberLookup
public struct Draft<Value: Validatable & Sendable>: Sendable {
    /// Reads the value that is to be changed, and the commit that made it.
    public typealias Read = @Sendable () -> (value: Value, revision: Revision)
    /// Replaces the value if the commit is still the one that was read.
    public typealias CompareAndSet = @Sendable (Value, Revision) throws(StateError) -> Revision

    /// The value as it is filled in.
    public var value: Value
    /// The commit from which it began, or that it made.
    public private(set) var revision: Revision
    private let read: Read
    private let compareAndSet: CompareAndSet

    /// Begins a draft of a value that lives anywhere.
    public init(reading read: @escaping Read, committing compareAndSet: @escaping CompareAndSet) {
        self.read = read
        self.compareAndSet = compareAndSet
        (value, revision) = read()
    }

    /// Begins a draft of the value of `state`.
    public init<Failure: Error>(of state: State<Value, Failure>) {
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

    /// What is wrong with the value.
    public var issues: [ValidationIssue] { value.validate() }

    /// What is wrong with the part at `path`, and with what is below it: `address/city`.
    public func issues(at path: String) -> [ValidationIssue] {
        issues.filter { $0.path == path || path.isEmpty || $0.path.hasPrefix("\(path)/") }
    }

    /// Replaces the container's value with this one, if it is good and nobody changed the other since it was read.
    ///
    /// - Returns: The commit.
    /// - Throws: ``StateError/Code/rejected``, with the issues; ``StateError/Code/conflict`` where somebody was faster:
    ///   ``rebase()`` or ``revert()`` then; or why the container refused it. The container is as it was, the
    ///   draft as it is.
    @discardableResult
    public mutating func commit() throws(StateError) -> Revision {
        try value.checkValidity()
        revision = try compareAndSet(value, revision)
        return revision
    }

    /// Keeps what is filled in, and takes the container's value as seen: the next commit replaces it.
    ///
    /// - Returns: The value that would be replaced.
    @discardableResult
    public mutating func rebase() -> Value {
        let (current, revision) = read()
        self.revision = revision
        return current
    }

    /// Begins again with the container's value.
    public mutating func revert() { (value, revision) = read() }
}
