/// How safe a change must be before its writer is acknowledged.
///
/// It does not affect others: a change of a stored key is delivered to watchers once it is on
/// stable storage, whatever the writer asked for.
public enum Durability: UInt8, Hashable, Sendable, CaseIterable {
    /// In memory: a crash of the process that keeps the store may lose it.
    case memory
    /// In memory now, on stable storage within an interval that the keys' rule names: a crash or a
    /// loss of power may lose the changes of that interval, and nothing older.
    case interval
    /// On stable storage.
    case synced
}

extension Durability: Comparable {
    /// By safety.
    public static func < (left: Durability, right: Durability) -> Bool {
        left.rawValue < right.rawValue
    }
}

extension Durability: LosslessStringConvertible {
    /// Its name: `memory`, `interval` or `synced`.
    public var description: String {
        switch self {
        case .memory: "memory"
        case .interval: "interval"
        case .synced: "synced"
        }
    }

    /// Reads the name; nil for any other text.
    public init?(_ word: String) {
        guard let level = Durability.allCases.first(where: { $0.description == word }) else {
            return nil
        }
        self = level
    }
}
