public import StateEngine
public import StateJSON

/// One step of a schema: from one version of a stored value to the next.
public struct StateMigration: Sendable {
    /// The version that it starts from; it leads to the next one.
    public let source: Int
    let step: @Sendable (inout JSONValue) throws -> Void

    /// Makes a step.
    ///
    /// - Parameters:
    ///   - source: The version that it starts from, 1 at least.
    ///   - step: Changes the value as it is stored. It may run more than once for one value, so it only
    ///     computes. What it throws is found in the message of the error ``StateError/Code/undecodable``.
    public init(from source: Int, _ step: @escaping @Sendable (inout JSONValue) throws -> Void) {
        precondition(source >= 1, "versions begin with 1, not with \(source)")
        self.source = source
        self.step = step
    }
}

/// What migrating one entry would do.
public struct MigrationForecast: Hashable, Sendable {
    /// What would become of the entry.
    public enum Outcome: Hashable, Sendable {
        /// It is of the present version, and is read as it is.
        case unchanged
        /// It would be read from the older version `from`, and be written as `bytes`, or be removed where that is nil.
        case migrated(from: Int, bytes: [UInt8]?)
        /// It cannot be read; a container would leave it as it is.
        case failed(StateError)
    }

    /// The entry's key.
    public let key: Key
    /// What would become of it.
    public let outcome: Outcome
}

extension StateCodec {
    /// What migrating `entries` would do to each of them; nothing is written.
    ///
    /// - Complexity: O(*n*) in the bytes of the entries.
    public func forecast(
        _ entries: some Sequence<(key: Key, bytes: [UInt8])>
    ) -> [MigrationForecast] {
        entries.map { MigrationForecast(key: $0.key, outcome: outcome(of: $0.bytes)) }
    }

    private func outcome(of bytes: [UInt8]) -> MigrationForecast.Outcome {
        do {
            let stored = try decodeStored(bytes)
            guard let version = stored.migratedFrom else { return .unchanged }
            return .migrated(from: version, bytes: try encode(stored.value))
        } catch {
            return .failed(error)
        }
    }
}
