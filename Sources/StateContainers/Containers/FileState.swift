public import StateEngine

/// A container whose value is a file that people, editors and configuration management can edit.
///
/// The file holds the value as a person would type it, an object or an array over several lines. An
/// edit from outside arrives as a change whose cause is `file`. If the file is removed, the
/// container has its default value.
///
/// ```swift
/// let theme = try FileState("blue", key: "ui/theme", in: StateDirectory(path: "conf"))
/// ```
///
/// A subclass may override `didModify(_:)`.
open class FileState<Value: Codable & Sendable>: PersistentState<Value>, @unchecked Sendable {
    // Constant: the proof of `@unchecked Sendable`.
    /// The directory of the file; it stays open as long as a container of it lives.
    public final let directory: StateDirectory

    package override class var libraryClass: AnyClass { FileState<Value>.self }

    /// Makes a container of the file that `key` names below `directory`.
    ///
    /// - Throws: As ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
    public init(
        _ defaultValue: Value,
        key: Key,
        in directory: StateDirectory,
        codec: StateCodec<Value> = .standard,
        durability: Durability = .synced,
        acceptsUnreadable: Bool = false
    ) throws(StateError) {
        self.directory = directory
        try super.init(
            defaultValue,
            key: key,
            in: directory.keyspace,
            codec: codec,
            durability: durability,
            acceptsUnreadable: acceptsUnreadable
        )
    }

    /// The same in a task, which waits without blocking the thread.
    public init(
        _ defaultValue: Value,
        key: Key,
        in directory: StateDirectory,
        codec: StateCodec<Value> = .standard,
        durability: Durability = .synced,
        acceptsUnreadable: Bool = false
    ) async throws(StateError) {
        self.directory = directory
        try await super.init(
            defaultValue,
            key: key,
            in: directory.keyspace,
            codec: codec,
            durability: durability,
            acceptsUnreadable: acceptsUnreadable
        )
    }
}
