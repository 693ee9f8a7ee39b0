public import StateEngine

/// A stored value as a property: read it by its name, and change it by that of its container.
///
/// ```swift
/// struct Player {
///     @StateValue("audio/volume") var volume = 0.5
///
///     func louder() throws { try $volume ~> { $0 += 0.1 } }
/// }
/// ```
///
/// Where the value is stored depends on the context: ``StateStorage/current``, or the storage that
/// is named. All properties of a key share the value. Reading is noted for the Observation library.
@propertyWrapper
public struct StateValue<Value: Codable & Sendable>: Sendable {
    /// The container: `$volume`.
    public let projectedValue: PersistentState<Value>

    /// Makes the container of `key`.
    ///
    /// - Parameters:
    ///   - defaultValue: The value if nothing is stored.
    ///   - key: The key of the entry.
    ///   - storage: Where it is stored.
    ///   - codec: Converts a value to bytes and back.
    public init(
        wrappedValue defaultValue: Value,
        _ key: Key,
        in storage: StateStorage = .current,
        codec: StateCodec<Value> = .standard
    ) {
        projectedValue = PersistentState(defaultValue, key: key, in: storage, codec: codec)
    }

    /// The value.
    ///
    /// It has no setter: a write can fail, and `volume += 0.1` by two threads would lose a change.
    public var wrappedValue: Value {
        get { projectedValue.observedValue(\.self) }
        @available(
            *,
            unavailable,
            message: "use the container: try $volume ~> 0.7, or try $volume ~> { $0 += 0.1 }"
        )
        // For key paths, which the compiler cannot refuse.
        nonmutating set { projectedValue.replaceOrNote(newValue) }
    }
}

/// A stored value as a property that can only be read.
///
/// ```swift
/// @StateReader("audio/volume") var volume = 0.5
/// ```
@propertyWrapper
public struct StateReader<Value: Codable & Sendable>: Sendable {
    private let container: PersistentState<Value>

    /// Makes a reader of `key`; the parameters are those of ``StateValue``.
    public init(
        wrappedValue defaultValue: Value,
        _ key: Key,
        in storage: StateStorage = .current,
        codec: StateCodec<Value> = .standard
    ) {
        container = PersistentState(defaultValue, key: key, in: storage, codec: codec)
    }

    /// The value.
    public var wrappedValue: Value { container.observedValue(\.self) }

    /// The reader: `$volume`.
    public var projectedValue: StateReader { self }

    /// Whether the value is the stored one.
    public var status: StateStatus { container.status }

    /// The values: each iterator gets the current one first, then always the latest.
    public var values: StateValues<Value> { container.values }

    /// Calls `body` for changes until the returned observation is released; see
    /// ``MonitoredContainer/observe(initial:file:line:_:)``.
    public func observe(
        initial: Bool = true,
        file: String = #fileID,
        line: Int = #line,
        @_inheritActorContext _ body:
            @escaping @isolated(any) @Sendable (
                StateChange<Value>
            ) -> Void
    ) -> StateObservation {
        container.observe(initial: initial, file: file, line: line, body)
    }
}
