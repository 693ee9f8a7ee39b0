/// A member that is not there is a nil in a wrapper, as it is without one: what the compiler makes of `Codable` calls these
/// rather than the general ones.
extension KeyedDecodingContainer {
    /// Decodes a wrapped Optional; a member that is not there is nil.
    public func decode<Wrapper: ValidatedWrapper & Decodable>(
        _ type: Wrapper.Type,
        forKey key: Key
    ) throws -> Wrapper where Wrapper.Value: ExpressibleByNilLiteral {
        try decodeIfPresent(type, forKey: key) ?? Wrapper(unruled: nil)
    }
}

extension KeyedEncodingContainer {
    /// Encodes a wrapped Optional; nil is no member.
    public mutating func encode<Wrapper: ValidatedWrapper & Encodable, Wrapped>(
        _ wrapper: Wrapper,
        forKey key: Key
    ) throws where Wrapper.Value == Wrapped?, Wrapped: Encodable {
        try encodeIfPresent(wrapper.wrappedValue, forKey: key)
    }
}
