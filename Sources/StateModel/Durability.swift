/// How safe a change is before its writer goes on.
///
/// It says nothing of others: they are told of a change to a stored key once it is on stable storage, whatever the
/// writer asked for.
public enum Durability: UInt8, Hashable, Sendable, CaseIterable {
    /// In memory: a crash of the process that keeps the store may lose it.
    case memory
    /// Given to the system: a loss of power may lose it.
    case written
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
    /// The word for it: `memory`, `written` or `synced`.
    public var description: String {
        switch self {
        case .memory: "memory"
        case .written: "written"
        case .synced: "synced"
        }
    }

    /// Reads the word; nil for any other.
    public init?(_ word: String) {
        guard let level = Durability.allCases.first(where: { $0.description == word }) else {
            return nil
        }
        self = level
    }
}
