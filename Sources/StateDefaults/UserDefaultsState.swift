import Foundation
public import StateContainers
import StateEngine

/// A container whose value is a default of the user.
///
/// For a program that keeps its preferences there already. It is as safe as Foundation's `UserDefaults`, and no safer: on Linux each
/// change truncates the suite's file and writes it anew, so that a crash in between loses the suite, and a second process overwrites
/// what the first has set. Where values must not be lost, use `SQLiteState`.
///
/// ```swift
/// let touchID = try UserDefaultsState(false, key: "isTouchIDEnabled")
/// ```
public final class UserDefaultsState<Value: Codable & Sendable>: PersistentState<Value>,
    FinalContainer, @unchecked Sendable
{
    /// A container of a default.
    ///
    /// - Parameters:
    ///   - defaultValue: What it holds where the default is not set.
    ///   - key: The name of the default.
    ///   - suite: Which defaults; nil: those of this program.
    ///   - codec: How a value becomes bytes.
    /// - Throws: as ``PersistentState/init(_:key:in:codec:durability:acceptsUnreadable:)``.
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

/// The suites that are open: one keyspace each, for the life of the process.
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
