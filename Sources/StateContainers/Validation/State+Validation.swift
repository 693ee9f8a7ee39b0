public import StateEngine

extension State where Failure == StateError, Value: Validatable {
    /// A container in memory that refuses bad values.
    ///
    /// - Parameters:
    ///   - defaultValue: What it holds until the first change.
    ///   - key: Its name in messages; another container of that key is another container.
    /// - Throws: ``StateError/Code/rejected``, with the issues of `defaultValue`. `modify` throws the same for a bad
    ///   value, and leaves the one that was there.
    public convenience init(_ defaultValue: Value, key: Key) throws(StateError) {
        try self.init(defaultValue, key: key) { (value) throws(StateError) in
            try value.checkValidity()
        }
    }
}

extension StateCodec {
    /// The same codec, which refuses values that are bad, or have bad ones in them, both ways, so that none reaches a store.
    ///
    /// - Returns: A codec that throws ``StateError/Code/rejected``, with the issues; this one where no part of the type is ``Validatable``.
    package var checked: StateCodec {
        guard mayHaveIssues(Value.self) else { return self }
        @Sendable func check(_ value: Value) throws(StateError) -> Value {
            let issues = nestedIssues(value)
            if !issues.isEmpty { throw StateError(rejecting: issues) }
            return value
        }
        return StateCodec { (value) throws(StateError) in
            try encode(check(value))
        } decodeStored: { (bytes) throws(StateError) in
            let stored = try decodeStored(bytes)
            return (try check(stored.value), stored.migratedFrom)
        }
    }
}
