import StateJSON

/// The standard codec's decoder of one element of a JSON text.
final class ValueDecoder: Decoder {
    let document: JSONDocument
    /// The element's place among the tokens.
    let token: Int
    let place: CodingPlace?
    let userInfo: [CodingUserInfoKey: Any] = [:]

    /// Whether the first `decodeNil()` returns false even if the element is `null`.
    private var isPresent: Bool

    init(_ document: JSONDocument, _ token: Int, at place: CodingPlace?, isPresent: Bool = false) {
        self.isPresent = isPresent
        self.document = document
        self.token = token
        self.place = place
    }

    var codingPath: [any CodingKey] { place?.path ?? [] }

    /// Whether the element is `null`.
    func decodeNil() -> Bool {
        if isPresent {
            isPresent = false
            return false
        }
        return document.tokens[token].kind == .null
    }

    /// The value of the element at `token`.
    static func decoded<T: Decodable>(
        _ type: T.Type,
        _ document: JSONDocument,
        _ token: Int,
        at place: @autoclosure () -> CodingPlace?
    ) throws -> T {
        // Elements of most arrays and dictionaries need no decoder. The types are equal, so the
        // cast changes nothing. No `T?` is made, because its type would have to be looked up at run
        // time.
        let element = document.tokens[token]
        if type == String.self, let value = String(element, in: document) {
            return unsafeBitCast(value, to: T.self)
        }
        if type == Int.self, let value = Int(element, in: document) {
            return unsafeBitCast(value, to: T.self)
        }
        if type == Double.self, let value = Double(element, in: document) {
            return unsafeBitCast(value, to: T.self)
        }
        if type == UInt8.self, let value = UInt8(element, in: document) {
            return unsafeBitCast(value, to: T.self)
        }
        if type == Bool.self, let value = Bool(element, in: document) {
            return unsafeBitCast(value, to: T.self)
        }
        return try ValueDecoder(document, token, at: place()).decode(type)
    }

    /// The value of the element; one of Foundation's has the codec's form.
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        guard let form = FoundationForm.of(type) else { return try T(from: self) }
        guard let value = form.decoded(type, document.tokens[token], in: document) else {
            throw Self.mismatch(type, form.expectation, document, token, at: codingPath)
        }
        return value
    }

    /// The scalar value of the element at `token`.
    static func decoded<T: StoredScalar>(
        scalar type: T.Type,
        _ document: JSONDocument,
        _ token: Int,
        at path: @autoclosure () -> [any CodingKey]
    ) throws -> T {
        guard let value = T(document.tokens[token], in: document) else {
            throw mismatch(T.self, T.expectation, document, token, at: path())
        }
        return value
    }

    static func mismatch(
        _ type: any Any.Type,
        _ expectation: String,
        _ document: JSONDocument,
        _ token: Int,
        at path: [any CodingKey]
    ) -> DecodingError {
        let found = document.description(of: token)
        let context = DecodingError.Context(path, "expected \(expectation), found \(found)")
        return document.tokens[token].kind == .null
            ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try expect(.object, [String: Any].self, "an object")
        return KeyedDecodingContainer(KeyedValueDecoder<Key>(self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try expect(.array, [Any].self, "an array")
        return UnkeyedValueDecoder(self)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        SingleValueDecoder(decoder: self)
    }

    private func expect(_ kind: JSONToken.Kind, _ type: any Any.Type, _ name: String) throws {
        guard document.tokens[token].kind == kind else {
            throw Self.mismatch(type, name, document, token, at: codingPath)
        }
    }
}
