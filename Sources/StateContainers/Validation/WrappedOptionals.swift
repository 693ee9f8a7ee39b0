/// A missing member decodes as a nil in a wrapper, as without one. Synthesised `Codable` code calls
/// these overloads instead of the general ones.
extension KeyedDecodingContainer {
    /// Decodes a wrapped value; a missing member gives nil, if the value can be nil.
    public func decode<Wrapper: ValidatedWrapper & Decodable>(
        _ type: Wrapper.Type,
        forKey key: Key
    ) throws -> Wrapper {
        if let wrapper = try decodeIfPresent(type, forKey: key) { return wrapper }
        if let absent = Wrapper.absent() { return absent }
        throw DecodingError.missing(key, at: codingPath)
    }
}

extension KeyedEncodingContainer {
    /// Encodes a wrapped value; a nil is left out.
    public mutating func encode<Wrapper: ValidatedWrapper & Encodable>(
        _ wrapper: Wrapper,
        forKey key: Key
    ) throws {
        try encodeIfPresent(wrapper.isAbsent ? nil : wrapper, forKey: key)
    }
}

extension ValidatedWrapper {
    /// The wrapper of a nil, however deeply nested; nil if the value cannot be nil.
    fileprivate static func absent() -> Self? {
        if let inner = Value.self as? any ValidatedWrapper.Type {
            return (inner.absent() as? Value).map { Self(unruled: $0) }
        }
        return (Value.self as? any AbsentValue.Type).map {
            Self(unruled: $0.absent(as: Value.self))
        }
    }

    fileprivate var isAbsent: Bool {
        if let inner = wrappedValue as? any ValidatedWrapper { return inner.isAbsent }
        return (Value.self as? any AbsentValue.Type)?.isAbsent(wrappedValue) ?? false
    }
}
