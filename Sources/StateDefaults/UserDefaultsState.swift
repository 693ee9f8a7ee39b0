import Foundation
public import StateContainers
import StateEngine

/// A container whose value is one of the user's defaults.
///
/// For programs that already keep their preferences there. A value is stored as `UserDefaults`
/// stores it: a number as a number, and Booleans, strings, dates, data, arrays, dictionaries and
/// URLs likewise; a struct is a dictionary. What other code sets in the suite arrives as a change
/// within about 0.1 s, and a change of this container is never based on an older value.
///
/// It is as safe as Foundation's
/// `UserDefaults` and no safer: on Linux each change truncates the suite's file and rewrites it, so
/// that a crash in between loses the suite, and a second process overwrites what the first has set.
/// If values must not be lost, use `SQLiteState`.
///
/// ```swift
/// let touchID = try UserDefaultsState(false, key: "isTouchIDEnabled")
/// ```
///
/// A subclass may override `didModify(_:)`. There are no stored properties: the proof of
/// `@unchecked Sendable`.
open class UserDefaultsState<Value: Codable & Sendable>: PersistentState<Value>,
    @unchecked Sendable
{
    /// Makes a container of a default.
    ///
    /// - Parameters:
    ///   - defaultValue: The value if the default is not set.
    ///   - key: The name of the default.
    ///   - suite: The suite; nil: that of `UserDefaults.standard`.
    ///   - codec: The standard one stores the value in the defaults' own types. What another one
    ///     writes is stored as a string, or as data if it is not UTF-8.
    ///   - acceptsUnreadable: Whether to accept a default that cannot be read as `Value`: the
    ///     container then has the default value, `status` says why, and only `replace(_:)`
    ///     writes.
    /// - Throws: As ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
    public init(
        _ defaultValue: Value,
        key: Key,
        suite: String? = nil,
        codec: StateCodec<Value> = .standard,
        acceptsUnreadable: Bool = false
    ) throws(StateError) {
        try super.init(
            defaultValue,
            key: key,
            in: DefaultsSuites.keyspace(of: suite),
            codec: codec,
            acceptsUnreadable: acceptsUnreadable
        )
    }

    /// The same in a task, which waits without blocking the thread.
    public init(
        _ defaultValue: Value,
        key: Key,
        suite: String? = nil,
        codec: StateCodec<Value> = .standard,
        acceptsUnreadable: Bool = false
    ) async throws(StateError) {
        try await super.init(
            defaultValue,
            key: key,
            in: DefaultsSuites.keyspace(of: suite),
            codec: codec,
            acceptsUnreadable: acceptsUnreadable
        )
    }
}

extension UserDefaultsState: LibraryContainer {
    package static var ownClass: AnyClass { UserDefaultsState<Value>.self }
}

extension StateStorage {
    /// The user's defaults, opened at the first use; see ``UserDefaultsState``.
    ///
    /// Values are stored in the defaults' own types, as by that container. What other code sets
    /// arrives as a change within about 0.1 s.
    ///
    /// - Parameter suite: The suite; nil: that of `UserDefaults.standard`.
    /// - Returns: The storage; nothing is opened yet.
    public static func defaults(suite: String? = nil) -> StateStorage {
        StateStorage(suite.map { "defaults '\($0)'" } ?? "defaults") { () throws(StateError) in
            try DefaultsSuites.keyspace(of: suite)
        }
    }
}

/// The open suites: one keyspace each, until the process ends.
private enum DefaultsSuites {
    private static let open = StateLock<[String?: LocalKeyspace]>([:])

    /// The keyspace of a suite, with what others have set by now.
    static func keyspace(of suite: String?) throws(StateError) -> LocalKeyspace {
        let keyspace = try opened(suite)
        try keyspace.adoptOutsideChanges()
        return keyspace
    }

    private static func opened(_ suite: String?) throws(StateError) -> LocalKeyspace {
        let result = open.withLock { open -> Result<LocalKeyspace, StateError> in
            if let keyspace = open[suite] { return .success(keyspace) }
            return Result { () throws(StateError) in
                let keyspace = try LocalKeyspace(backing: DefaultsBacking(suite: suite))
                open[suite] = keyspace
                return keyspace
            }
        }
        return try result.get()
    }
}
