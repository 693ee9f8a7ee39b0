public import StateEngine

/// Converts the value of a container to the bytes of an entry, and back.
///
/// ``standard`` stores what a person would type with `statectl set`. ``versioned(_:migrations:)``
/// does the same for a value whose schema has changed. A custom codec is two closures.
public struct StateCodec<Value>: Sendable {
    private let encoding: @Sendable (Value) throws(StateError) -> [UInt8]?
    private let decoding: @Sendable ([UInt8]?) throws(StateError) -> Stored
    /// Differs between codecs that encrypt with different keys; empty if it does not encrypt.
    package var seal: [UInt8] = []
    /// The codec that takes the place of a standard one in a store with a form of its own, if one
    /// does; nil for a custom codec.
    var standard: (@Sendable (any EntryForm) -> StateCodec?)?

    /// A decoded value, and the version that it was migrated from: nil if it had the current
    /// version.
    public typealias Stored = (value: Value, migratedFrom: Int?)

    /// Makes a codec without versions.
    ///
    /// - Parameters:
    ///   - encode: Returns the bytes of a value, or nil to remove the entry.
    ///   - decode: Returns the value of the bytes; the bytes are nil if there is no entry. It must
    ///     throw for bytes that it does not understand; they then stay in the store.
    public init(
        encode: @escaping @Sendable (Value) throws(StateError) -> [UInt8]?,
        decode: @escaping @Sendable ([UInt8]?) throws(StateError) -> Value
    ) {
        self.init(encode: encode) { (bytes) throws(StateError) in (try decode(bytes), nil) }
    }

    package init(
        encode: @escaping @Sendable (Value) throws(StateError) -> [UInt8]?,
        decodeStored: @escaping @Sendable ([UInt8]?) throws(StateError) -> Stored
    ) {
        encoding = encode
        decoding = decodeStored
    }

    /// The codec of the entries of `keyspace`: it refuses values with issues, and writes them in the
    /// form of the store.
    func adapted(to keyspace: any Keyspace) -> StateCodec {
        guard let form = (keyspace as? LocalKeyspace)?.backing as? any EntryForm else {
            return checked
        }
        return (standard?(form) ?? form.custom(self)).checked
    }

    /// The bytes of `value`, or nil if the entry is to be removed.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``, naming the place in the value that cannot be stored.
    public func encode(_ value: Value) throws(StateError) -> [UInt8]? { try encoding(value) }

    /// The value of `bytes`; pass nil if there is no entry.
    ///
    /// - Throws: As ``decodeStored(_:)``.
    public func decode(_ bytes: [UInt8]?) throws(StateError) -> Value { try decoding(bytes).value }

    /// The value of `bytes`, and the version that it was migrated from: nil if it had the current
    /// version.
    ///
    /// - Throws: ``StateError/Code/undecodable``, naming the place, what was expected and what was
    ///   found; ``StateError/Code/newerFormat``, naming both versions.
    public func decodeStored(_ bytes: [UInt8]?) throws(StateError) -> Stored { try decoding(bytes) }
}
