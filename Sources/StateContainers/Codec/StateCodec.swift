public import StateEngine

/// How the value of a container becomes the bytes of an entry, and comes back.
///
/// ``standard`` stores what a person would type with `statectl set`; ``versioned(_:migrations:)`` is the
/// same for a value whose form has changed. A codec of one's own is two closures.
public struct StateCodec<Value>: Sendable {
    private let encoding: @Sendable (Value) throws(StateError) -> [UInt8]?
    private let decoding: @Sendable ([UInt8]?) throws(StateError) -> Stored

    /// A value as it was read.
    public typealias Stored = (value: Value, migratedFrom: Int?)

    /// Makes a codec that has no versions.
    ///
    /// - Parameters:
    ///   - encode: The bytes of a value; nil where the entry is to be removed.
    ///   - decode: The value of bytes; of nil where there is no entry. It must throw for bytes that it does not
    ///     understand: they stay in the store.
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

    /// The bytes of `value`; nil where the entry is to be removed.
    ///
    /// - Throws: ``StateError/Code/err``, naming the place in the value, where it cannot be stored.
    public func encode(_ value: Value) throws(StateError) -> [UInt8]? { try encoding(value) }

    /// The value of `bytes`; of nil where there is no entry.
    ///
    /// - Throws: as ``decodeStored(_:)``.
    public func decode(_ bytes: [UInt8]?) throws(StateError) -> Value { try decoding(bytes).value }

    /// The value of `bytes`, and the version that it was migrated from; nil where it is the present one.
    ///
    /// - Throws: ``StateError/Code/undecodable``, naming the place, what was expected and what was found;
    ///   ``StateError/Code/newerFormat``, naming both versions.
    public func decodeStored(_ bytes: [UInt8]?) throws(StateError) -> Stored { try decoding(bytes) }
}
