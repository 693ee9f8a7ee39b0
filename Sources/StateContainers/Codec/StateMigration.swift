public import StateEngine
public import StateJSON

/// One migration step: from one version of a stored value to the next.
public struct StateMigration: Sendable {
    /// The version that the step starts from; it leads to the next one.
    public let source: Int
    let step: @Sendable (inout JSONValue) throws -> Void

    /// Makes a step.
    ///
    /// - Parameters:
    ///   - source: The version that it starts from, at least 1.
    ///   - step: Changes the value in its stored form. It may run more than once for one value, so
    ///     it must have no side effects. If it throws, decoding fails with
    ///     ``StateError/Code/undecodable``, whose message contains the error.
    public init(from source: Int, _ step: @escaping @Sendable (inout JSONValue) throws -> Void) {
        guard source >= 1 else {
            fatalError("a migration's source version must be at least 1, not \(source)")
        }
        self.source = source
        self.step = step
    }
}

/// What a migration of one entry would do.
public struct MigrationForecast: Hashable, Sendable {
    /// What would become of the entry.
    public enum Outcome: Hashable, Sendable {
        /// The entry has the current version and stays as it is.
        case unchanged
        /// The entry would be migrated from version `from` and written as `bytes`, or removed if
        /// `bytes` is nil. A file would have them over several lines.
        case migrated(from: Int, bytes: [UInt8]?)
        /// The entry cannot be read; a container would leave it as it is.
        case failed(StateError)
    }

    /// The entry's key.
    public let key: Key
    /// What would become of it.
    public let outcome: Outcome
}

extension StateCodec {
    /// What a migration would do to each of `entries`; writes nothing.
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
