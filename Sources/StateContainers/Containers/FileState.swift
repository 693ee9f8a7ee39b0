public import StateEngine

/// A container whose value is a file: for people, editors and configuration management.
///
/// The file holds the value as a person would type it. An edit from outside arrives as a change whose cause is `file`; a removed
/// file is the default value.
///
/// ```swift
/// let theme = try FileState("blue", key: "ui/theme", in: StateDirectory(path: "conf"))
/// ```
public final class FileState<Value: Codable & Sendable>: PersistentState<Value>, FinalContainer,
    @unchecked Sendable
{
    // Constant: the proof of `@unchecked Sendable`.
    /// Where the file is; open as long as a container of it lives.
    public let directory: StateDirectory

    /// A container of the file that `key` names below `directory`.
    ///
    /// - Throws: as ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
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
}
