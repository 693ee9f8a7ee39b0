import CLinux
public import StateEngine

/// The storage of static containers: it is named at once, and opened at the first use.
///
/// ```swift
/// enum AppState {
///     static let storage = StateStorage.directory("conf")
///     static let theme = PersistentState("blue", key: "ui/theme", in: storage)
/// }
///
/// try AppState.storage.open()     // at the start of the program: the one place that can fail
/// try AppState.theme ~> "dark"
/// ```
///
/// Without `open()`, or if it fails, an error is met at the first use: the container has its
/// default value, ``PersistentState/status`` is not `current`, and each change throws the error.
///
/// In a ``StateScope`` it is a new keyspace in memory, and what it names is not opened.
public final class StateStorage: Sendable {
    /// Its name in messages; in a ``StateScope``, storages of one name share a keyspace.
    public let name: String
    private let opening: @Sendable () throws(StateError) -> any Keyspace
    private let opened = StateLock<(any Keyspace)?>(nil)
    /// The threads that run the opening closure.
    private let openers = StateLock<Set<UInt>>([])

    /// Makes a storage of your own.
    ///
    /// - Parameters:
    ///   - name: Its name in messages.
    ///   - open: Opens the keyspace; called again after it has thrown.
    public init(
        _ name: String,
        open: @escaping @Sendable () throws(StateError) -> any Keyspace
    ) {
        self.name = name
        opening = open
    }

    /// A directory with one file for each key; see ``StateDirectory``.
    public static func directory(_ path: String) -> StateStorage {
        StateStorage("directory \(path)") { () throws(StateError) in
            try StateDirectory(path: path).keyspace
        }
    }

    /// A keyspace in memory, which is empty at the start of each process.
    public static func inMemory(_ name: String = "memory") -> StateStorage {
        StateStorage(name) { () throws(StateError) in try inMemory() }
    }

    /// Opens the storage, unless it is open.
    ///
    /// - Throws: Why it cannot be opened. Containers that were used before have that error; make
    ///   this the first use.
    public func open() throws(StateError) { _ = try keyspace(in: StateScope.current) }

    /// The same in a task, which waits without blocking its thread.
    public nonisolated(nonsending) func open() async throws(StateError) {
        let scope = StateScope.current
        _ = try await SharedKeyspace.opening { () throws(StateError) in try self.keyspace(in: scope)
        }
    }

    /// The open keyspace, for queries and commits of several keys: that of the present scope.
    ///
    /// ```swift
    /// let budgets = try AppState.storage.keyspace().query("budget/", as: Budget.self)
    /// ```
    ///
    /// Opens the storage, unless it is open, which blocks the thread.
    ///
    /// - Throws: Why it cannot be opened.
    public func keyspace() throws(StateError) -> any Keyspace {
        try keyspace(in: StateScope.current)
    }

    // MARK: By context

    /// The storage of containers that name none: that of ``with(_:_:)``, else that of
    /// ``use(_:)``.
    ///
    /// If there is neither, the containers refuse changes.
    public static var current: StateStorage {
        chosen ?? standard.withLock { $0 } ?? unchosen
    }

    /// Makes this the storage of all containers that name none; call it at the start of the program,
    /// before their first use.
    public static func use(_ storage: StateStorage) {
        let before = standard.withLock { standard in
            defer { standard = storage }
            return standard
        }
        withExtendedLifetime(before) {}
    }

    /// Runs `body`; containers that are made in it and name no storage are in `storage`.
    public static func with<R>(_ storage: StateStorage, _ body: () throws -> R) rethrows -> R {
        try $chosen.withValue(storage, operation: body)
    }

    @TaskLocal private static var chosen: StateStorage?
    private static let standard = StateLock<StateStorage?>(nil)
    private static let unchosen = StateStorage("no storage") { () throws(StateError) in
        throw StateError(
            .storage,
            "no storage has been chosen: call StateStorage.use(_:) at the start of the program"
        )
    }

    // MARK: Opening

    /// The open keyspace, in a scope one of its own.
    func keyspace(in scope: StateScope?) throws(StateError) -> any Keyspace {
        if let scope { return try scope.keyspace(named: name, StateStorage.inMemory) }
        if let opened = opened.withLock({ $0 }) { return opened }
        // Without the lock: this may wait for a disk.
        let thread = clinux_current_thread()
        guard openers.withLock({ $0.insert(thread).inserted }) else {
            fatalError("the closure that opens storage '\(name)' uses a container in that storage")
        }
        defer { _ = openers.withLock { $0.remove(thread) } }
        let new = try opening()
        return opened.withLock { opened in
            let first = opened ?? new
            opened = first
            return first
        }
    }

    private static func inMemory() throws(StateError) -> any Keyspace {
        try LocalKeyspace(backing: MemoryBacking())
    }
}
