import Foundation
public import StateContainers
import StateEngine

/// A container whose value is one of the user's defaults.
///
/// For programs that already keep their preferences there. It is as safe as Foundation's
/// `UserDefaults` and no safer: on Linux each change truncates the suite's file and rewrites it, so
/// that a crash in between loses the suite, and a second process overwrites what the first has set.
/// If values must not be lost, use `SQLiteState`.
///
/// ```swift
/// let touchID = try UserDefaultsState(false, key: "isTouchIDEnabled")
/// ```
public final class UserDefaultsState<Value: Codable & Sendable>: PersistentState<Value>,
    FinalContainer, @unchecked Sendable
{
    /// Makes a container of a default.
    ///
    /// - Parameters:
    ///   - defaultValue: The value if the default is not set.
    ///   - key: The name of the default.
    ///   - suite: The suite; nil: that of this program.
    ///   - codec: Converts a value to bytes and back.
    /// - Throws: As ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
    public init(
        _ defaultValue: Value,
        key: Key,
        suite: String? = nil,
        codec: StateCodec<Value> = .standard
    ) throws(StateError) {
        let name = suite ?? ProcessInfo.processInfo.processName
        try super.init(
            defaultValue,
            key: key,
            in: DefaultsSuites.keyspace(of: name),
            codec: codec
        )
    }
}

/// The open suites: one keyspace each, until the process ends.
private enum DefaultsSuites {
    private static let open = StateLock<[String: LocalKeyspace]>([:])

    static func keyspace(of suite: String) throws(StateError) -> LocalKeyspace {
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
