import StateJSON

/// The standard codec's encoder of one value; containers fill it.
final class ValueEncoder: Encoder {
    let place: CodingPlace?
    /// The encoded value; nil until there is one.
    private(set) var value: EncodedValue?
    let userInfo: [CodingUserInfoKey: Any] = [:]

    init(at place: CodingPlace?) { self.place = place }

    init(at place: CodingPlace?, filling value: EncodedValue) {
        self.place = place
        self.value = value
    }

    var codingPath: [any CodingKey] { place?.path ?? [] }

    /// The encoded form of `value`; an empty object if it encodes nothing.
    static func encoded<T: Encodable>(
        _ value: T,
        at place: @autoclosure () -> CodingPlace
    ) throws -> EncodedValue {
        if let scalar = commonScalar(value) { return scalar }
        let encoder = ValueEncoder(at: place())
        guard (encoder.place?.depth ?? 0) <= JSONDocument.depthLimit else {
            throw encoder.fault(value, "nested deeper than \(JSONDocument.depthLimit)")
        }
        try encoder.encode(value)
        return encoder.value ?? .object(EncodedObject())
    }

    /// Encodes the value of this place; one of Foundation's in the codec's form.
    func encode<T: Encodable>(_ value: T) throws {
        if let form = FoundationForm.of(T.self) {
            put(try form.encoded(value, at: place))
        } else {
            try value.encode(to: self)
        }
    }

    /// The elements of most arrays and dictionaries, without an encoder for each.
    private static func commonScalar<T>(_ value: T) -> EncodedValue? {
        // The types are equal, so the cast changes nothing.
        if T.self == String.self { return unsafeBitCast(value, to: String.self).encoded }
        if T.self == Int.self { return unsafeBitCast(value, to: Int.self).encoded }
        if T.self == Double.self { return unsafeBitCast(value, to: Double.self).encoded }
        if T.self == Bool.self { return unsafeBitCast(value, to: Bool.self).encoded }
        if T.self == UInt8.self { return unsafeBitCast(value, to: UInt8.self).encoded }
        return nil
    }

    /// The encoded form of a scalar.
    static func encoded<T: StoredScalar>(
        scalar value: T,
        at path: @autoclosure () -> [any CodingKey]
    ) throws -> EncodedValue {
        guard let encoded = value.encoded else {
            let context = EncodingError.Context(
                codingPath: path(),
                debugDescription: "\(value) is not finite, and JSON cannot represent it"
            )
            throw EncodingError.invalidValue(value, context)
        }
        return encoded
    }

    /// Sets the only value, as a single-value container requires.
    func put(_ newValue: EncodedValue) {
        guard value == nil else {
            fatalError("two values were encoded at one place, \(codingPath)")
        }
        value = newValue
    }

    func fault(_ value: Any, _ message: String) -> EncodingError {
        .invalidValue(value, .init(codingPath: codingPath, debugDescription: message))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(KeyedValueEncoder<Key>(place: place, object: object()))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .array(let array) = value { return UnkeyedValueEncoder(place: place, array: array) }
        let array = EncodedArray()
        put(.array(array))
        return UnkeyedValueEncoder(place: place, array: array)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleValueEncoder(encoder: self)
    }

    /// The object to fill.
    ///
    /// A class and its superclass may fill the same one.
    private func object() -> EncodedObject {
        if case .object(let object) = value { return object }
        let object = EncodedObject()
        put(.object(object))
        return object
    }
}
