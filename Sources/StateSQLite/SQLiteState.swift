public import StateContainers
import StateEngine

/// A container whose value is in the program's own database, in the format that `stated` serves.
///
/// ```swift
/// let volume = try SQLiteState(0.5, key: "audio/volume", in: SQLiteDatabase(path: "app.db"))
/// try volume ~> 0.7
/// ```
///
/// A subclass may override `didModify(_:)`.
open class SQLiteState<Value: Codable & Sendable>: PersistentState<Value>, @unchecked Sendable {
    // Constant: the proof of `@unchecked Sendable`.
    /// The database of the value; it stays open as long as a container in it lives.
    public final let database: SQLiteDatabase

    /// Makes a container of the entry `key` of `database`.
    ///
    /// - Throws: As ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
    public init(
        _ defaultValue: Value,
        key: Key,
        in database: SQLiteDatabase,
        codec: StateCodec<Value> = .standard,
        durability: Durability = .synced,
        acceptsUnreadable: Bool = false
    ) throws(StateError) {
        self.database = database
        try super.init(
            defaultValue,
            key: key,
            in: database.keyspace,
            codec: codec,
            durability: durability,
            acceptsUnreadable: acceptsUnreadable
        )
    }

    /// The same in a task, which waits without blocking the thread.
    public init(
        _ defaultValue: Value,
        key: Key,
        in database: SQLiteDatabase,
        codec: StateCodec<Value> = .standard,
        durability: Durability = .synced,
        acceptsUnreadable: Bool = false
    ) async throws(StateError) {
        self.database = database
        try await super.init(
            defaultValue,
            key: key,
            in: database.keyspace,
            codec: codec,
            durability: durability,
            acceptsUnreadable: acceptsUnreadable
        )
    }
}

extension SQLiteState: LibraryContainer {
    package static var ownClass: AnyClass { SQLiteState<Value>.self }
}
