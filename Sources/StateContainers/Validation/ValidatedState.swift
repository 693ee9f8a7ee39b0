public import StateEngine

/// A container in memory that refuses invalid values: `try ValidatedState(Account(), key: "account")`.
public typealias ValidatedState<Value: Validatable & Sendable> = MonitoredContainer<
    Value, StateError
>

extension StateContainer where Value: Validatable {
    /// A value with rules belongs in a container that can refuse it.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``, always.
    @available(*, deprecated, message: "use try ValidatedState(_:key:), which can refuse a value")
    public convenience init(_ defaultValue: Value, key: Key) throws(StateError)
    where Failure == Never {
        throw StateError(
            .invalidRequest,
            "state '\(key)' cannot refuse a value: use ValidatedState(_:key:)"
        )
    }
}

extension StateContainer where Failure == StateError, Value: Validatable {
    /// Makes a container in memory that refuses invalid values.
    ///
    /// - Parameters:
    ///   - defaultValue: The value until the first change.
    ///   - key: The name in messages; containers with the same key are independent.
    /// - Throws: ``StateError/Code/rejected``, with the issues of `defaultValue`. `modify` throws
    ///   the same for an invalid value; the container's value is then unchanged.
    public convenience init(_ defaultValue: Value, key: Key) throws(StateError) {
        try defaultValue.requireValid()
        self.init(startingWith: defaultValue, key: key)
    }

    /// Makes a container in memory that refuses invalid values, but may begin with one: the empty
    /// value that a person has yet to fill in.
    ///
    /// - Parameters:
    ///   - value: The value until the first change, valid or not.
    ///   - key: The name in messages; containers with the same key are independent.
    public convenience init(startingWith value: Value, key: Key) {
        self.init(trackedInMemory: value, key: key) { (value) throws(StateError) in
            try value.requireValid()
        }
    }
}

extension StateCodec {
    /// The same codec, which also refuses values with issues when encoding and decoding, so that
    /// none reaches a store.
    ///
    /// - Returns: A codec that throws ``StateError/Code/rejected``, with the issues; this codec if
    ///   no part of the type is ``Validatable``.
    package var checked: StateCodec {
        guard TypeFacts.of(Value.self).mayHaveIssues else { return self }
        @Sendable func check(_ value: Value) throws(StateError) -> Value {
            let issues = nestedIssues(value)
            if !issues.isEmpty { throw StateError(rejecting: issues) }
            return value
        }
        var codec = StateCodec { (value) throws(StateError) in
            try encode(check(value))
        } decodeStored: { (bytes) throws(StateError) in
            let stored = try decodeStored(bytes)
            return (try check(stored.value), stored.migratedFrom)
        }
        codec.seal = seal
        return codec
    }
}
