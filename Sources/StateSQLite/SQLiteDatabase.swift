public import StateEngine

/// A program's own database file: `SQLiteState(0.5, key: "audio/volume", in: SQLiteDatabase(path:
/// "app.db"))`.
///
/// All `SQLiteDatabase` objects of a file in a process share one keyspace, which closes when nobody
/// holds it any more: no such object, container, query or watch. While it is open, no other process
/// can open it. The format is the one that `stated` serves.
public final class SQLiteDatabase: Sendable {
    /// SQLite's own name of a database in memory.
    static let memoryPath = ":memory:"

    /// The path of the file, as it was given; `:memory:` for a database in memory.
    public let path: String
    /// The entries.
    public let keyspace: LocalKeyspace

    /// Opens a database in an existing directory; creates it if it is missing.
    ///
    /// `<path>.lock` is its owner's lock.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - history: How many past changes it keeps. The first object that opens it decides.
    /// - Throws: ``StateError/Code/locked``, naming the process that has it open;
    ///   ``StateError/Code/corrupt``, ``StateError/Code/newerFormat`` or
    ///   ``StateError/Code/storage``. The file is unchanged.
    /// - Complexity: O(*n*) in the bytes of the history, unless it was open.
    public init(
        path: String,
        history: HistoryLimits = HistoryLimits()
    ) throws(StateError) {
        self.path = path
        keyspace = try SQLiteDatabase.open(path, history)
    }

    /// The same in a task, which waits without blocking its thread.
    public init(
        path: String,
        history: HistoryLimits = HistoryLimits()
    ) async throws(StateError) {
        self.path = path
        keyspace = try await SharedKeyspace.opening { () throws(StateError) in
            try SQLiteDatabase.open(path, history)
        }
    }

    private static func open(
        _ path: String,
        _ history: HistoryLimits
    ) throws(StateError) -> LocalKeyspace {
        let identity = try SharedKeyspace.Identity(kind: "sqlite", file: path)
        return try SharedKeyspace.open(identity) { SQLiteBacking(path: path, history: history) }
    }

    /// A new, empty database in memory, which is gone with its last container.
    ///
    /// For tests and previews: containers behave as in a file, and changes are at once as durable
    /// as they get. Each access makes another database. To put several containers in one, keep it:
    ///
    /// ```swift
    /// let database = SQLiteDatabase.inMemory
    /// let volume = try SQLiteState(0.5, key: "audio/volume", in: database)
    /// let muted = try SQLiteState(false, key: "audio/muted", in: database)
    /// ```
    public static var inMemory: SQLiteDatabase { SQLiteDatabase() }

    private init() {
        path = SQLiteDatabase.memoryPath
        do throws(StateError) {
            keyspace = try LocalKeyspace(backing: MemoryBacking())
        } catch {
            preconditionFailure("a keyspace in memory did not open: \(error)")
        }
    }
}
