import StateJSON

/// Members of an object.
struct KeyedValueDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let decoder: ValueDecoder
    /// The places of the values by name, if there are many members; few are searched one by one.
    private let index: [String: Int]?

    private static var indexThreshold: Int { 16 }

    init(_ decoder: ValueDecoder) {
        self.decoder = decoder
        let document = decoder.document
        guard document.tokens[decoder.token].end > Self.indexThreshold else {
            index = nil
            return
        }
        var index: [String: Int] = [:]
        index.reserveCapacity(Int(document.tokens[decoder.token].end))
        document.forEachMember(of: decoder.token) { name, value in
            // Of two members with the same name the first counts, as in Foundation's decoder.
            index[document.text(of: document.tokens[name]), default: value] = value
            return true
        }
        self.index = index
    }

    var codingPath: [any CodingKey] { decoder.codingPath }

    var allKeys: [Key] {
        var seen: Set<String> = []
        var keys: [Key] = []
        decoder.document.forEachMember(of: decoder.token) { name, _ in
            let name = decoder.document.text(of: decoder.document.tokens[name])
            if !isHidden(name), seen.insert(name).inserted, let key = Key(stringValue: name) {
                keys.append(key)
            }
            return true
        }
        return keys
    }

    func contains(_ key: Key) -> Bool { find(key) != nil }

    func decodeNil(forKey key: Key) throws -> Bool {
        decoder.document.tokens[try value(key)].kind == .null
    }

    func decode<T: StoredScalar>(_ type: T.Type, forKey key: Key) throws -> T {
        try scalar(type, key)
    }

    func scalar<T: StoredScalar>(_ type: T.Type, _ key: Key) throws -> T {
        try scalar(type, value(key), key)
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        let value = try value(key)
        return try ValueDecoder.decoded(
            type,
            decoder.document,
            value,
            at: CodingPlace(key, below: decoder.place)
        )
    }

    func decodeIfPresent<T: StoredScalar>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let value = find(key), decoder.document.tokens[value].kind != .null else {
            return nil
        }
        return try scalar(type, value, key)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try nestedDecoder(value(key), key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try nestedDecoder(value(key), key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        nestedDecoder(try value(PlaceKey.super), PlaceKey.super)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder { nestedDecoder(try value(key), key) }

    private func nestedDecoder(_ token: Int, _ key: any CodingKey) -> ValueDecoder {
        ValueDecoder(decoder.document, token, at: CodingPlace(key, below: decoder.place))
    }

    private func scalar<T: StoredScalar>(_ type: T.Type, _ token: Int, _ key: Key) throws -> T {
        try ValueDecoder.decoded(scalar: type, decoder.document, token, at: codingPath + [key])
    }

    private func value(_ key: some CodingKey) throws -> Int {
        guard let value = find(key) else { throw DecodingError.missing(key, at: codingPath) }
        return value
    }

    private func find(_ key: some CodingKey) -> Int? {
        let name = key.stringValue
        if isHidden(name) { return nil }
        guard let index else { return decoder.document.member(name, of: decoder.token) }
        return index[name]
    }

    /// The stored version belongs to the codec, not to the value.
    private func isHidden(_ name: String) -> Bool {
        decoder.token == 0 && name == StoredVersion.name
    }
}

/// Elements of an array.
struct UnkeyedValueDecoder: UnkeyedDecodingContainer {
    private let decoder: ValueDecoder
    private var token: Int
    private(set) var currentIndex = 0

    init(_ decoder: ValueDecoder) {
        self.decoder = decoder
        token = decoder.token + 1
    }

    var codingPath: [any CodingKey] { decoder.codingPath }
    private var elementCount: Int { Int(decoder.document.tokens[decoder.token].end) }
    var count: Int? { elementCount }
    var isAtEnd: Bool { currentIndex >= elementCount }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd else { throw exhausted(Never.self) }
        let isNull = decoder.document.tokens[token].kind == .null
        if isNull { advance() }
        return isNull
    }

    mutating func decode<T: StoredScalar>(_ type: T.Type) throws -> T { try scalar(type) }

    mutating func scalar<T: StoredScalar>(_ type: T.Type) throws -> T {
        try take(type) { array in
            try ValueDecoder.decoded(
                scalar: type,
                array.decoder.document,
                array.token,
                at: array.codingPath + [PlaceKey(array.currentIndex)]
            )
        }
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try take(type) { array in
            let (document, token) = (array.decoder.document, array.token)
            return try ValueDecoder.decoded(type, document, token, at: array.elementPlace)
        }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try take(ValueDecoder.self) { try $0.nestedDecoder.container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take(ValueDecoder.self) { try $0.nestedDecoder.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder {
        try take(ValueDecoder.self) { $0.nestedDecoder }
    }

    private var elementPlace: CodingPlace {
        CodingPlace(PlaceKey(currentIndex), below: decoder.place)
    }

    private var nestedDecoder: ValueDecoder {
        ValueDecoder(decoder.document, token, at: elementPlace)
    }

    /// Returns the result of `body` for the next element, and advances to the one after it.
    @inline(__always)
    private mutating func take<R>(
        _ type: any Any.Type,
        _ body: (UnkeyedValueDecoder) throws -> R
    ) throws -> R {
        guard !isAtEnd else { throw exhausted(type) }
        let result = try body(self)
        advance()
        return result
    }

    private mutating func advance() {
        token = Int(decoder.document.tokens[token].next)
        currentIndex += 1
    }

    private func exhausted(_ type: any Any.Type) -> DecodingError {
        let found = "expected one more element, found the end of the array"
        return .valueNotFound(type, .init(codingPath + [PlaceKey(currentIndex)], found))
    }
}

/// The element itself.
struct SingleValueDecoder: SingleValueDecodingContainer {
    let decoder: ValueDecoder

    var codingPath: [any CodingKey] { decoder.codingPath }

    func decodeNil() -> Bool { decoder.decodeNil() }

    func decode<T: StoredScalar>(_ type: T.Type) throws -> T { try scalar(type) }

    func scalar<T: StoredScalar>(_ type: T.Type) throws -> T {
        try ValueDecoder.decoded(scalar: type, decoder.document, decoder.token, at: codingPath)
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try ValueDecoder.decoded(type, decoder.document, decoder.token, at: decoder.place)
    }
}
