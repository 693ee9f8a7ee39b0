/// Members of an object.
struct KeyedValueEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let place: CodingPlace?
    let object: EncodedObject

    var codingPath: [any CodingKey] { place?.path ?? [] }

    func encodeNil(forKey key: Key) { put(.null, key) }

    func encode<T: StoredScalar>(_ value: T, forKey key: Key) throws { try put(scalar: value, key) }

    func put<T: StoredScalar>(scalar value: T, _ key: Key) throws {
        put(try ValueEncoder.encoded(scalar: value, at: codingPath + [key]), key)
    }

    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        put(try ValueEncoder.encoded(value, at: CodingPlace(key, below: place)), key)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        nestedEncoder(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        nestedEncoder(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { nestedEncoder(PlaceKey.super) }

    func superEncoder(forKey key: Key) -> any Encoder { nestedEncoder(key) }

    private func nestedEncoder(_ key: any CodingKey) -> ValueEncoder {
        let encoder = ValueEncoder(at: CodingPlace(key, below: place))
        put(.deferred(encoder), key)
        return encoder
    }

    private func put(_ value: EncodedValue, _ key: any CodingKey) {
        object.members.append((key.stringValue, value))
    }
}

/// Elements of an array.
struct UnkeyedValueEncoder: UnkeyedEncodingContainer {
    let place: CodingPlace?
    let array: EncodedArray

    var codingPath: [any CodingKey] { place?.path ?? [] }
    var count: Int { array.elements.count }

    func encodeNil() { array.elements.append(.null) }

    func encode<T: StoredScalar>(_ value: T) throws { try put(scalar: value) }

    func put<T: StoredScalar>(scalar value: T) throws {
        let path = { codingPath + [PlaceKey(count)] }
        array.elements.append(try ValueEncoder.encoded(scalar: value, at: path()))
    }

    func encode<T: Encodable>(_ value: T) throws {
        array.elements.append(try ValueEncoder.encoded(value, at: nextPlace))
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        nestedEncoder().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        nestedEncoder().unkeyedContainer()
    }

    func superEncoder() -> any Encoder { nestedEncoder() }

    private var nextPlace: CodingPlace { CodingPlace(PlaceKey(count), below: place) }

    private func nestedEncoder() -> ValueEncoder {
        let encoder = ValueEncoder(at: nextPlace)
        array.elements.append(.deferred(encoder))
        return encoder
    }
}

/// The value itself.
struct SingleValueEncoder: SingleValueEncodingContainer {
    let encoder: ValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil() { encoder.put(.null) }

    func encode<T: StoredScalar>(_ value: T) throws { try put(scalar: value) }

    func put<T: StoredScalar>(scalar value: T) throws {
        encoder.put(try ValueEncoder.encoded(scalar: value, at: codingPath))
    }

    func encode<T: Encodable>(_ value: T) throws { try encoder.encode(value) }
}
