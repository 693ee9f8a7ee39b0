import StateEngine
import StateJSON

/// The standard codec's decoder of a whole entry: a scalar is the bytes themselves, anything else
/// is JSON.
///
/// The value's type decides which: the text is parsed as JSON only when the value asks for an
/// object or an array.
final class StoredDecoder: Decoder, SingleValueDecodingContainer {
    private let bytes: [UInt8]
    private var document: JSONDocument?
    private var isPresent: Bool
    private var wasRead = false
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    /// If `isPresent`, the value is known to exist: the first `decodeNil()` returns false even for
    /// `null`.
    init(_ bytes: [UInt8], isPresent: Bool = false) {
        self.bytes = bytes
        self.isPresent = isPresent
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try element().container(keyedBy: type)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try element().unkeyedContainer()
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool {
        if isPresent {
            isPresent = false
            return false
        }
        wasRead = true
        return bytes[...].trimmed.elementsEqual("null".utf8)
    }

    func decode<T: StoredScalar>(_ type: T.Type) throws -> T { try scalar(type) }

    func scalar<T: StoredScalar>(_ type: T.Type) throws -> T {
        wasRead = true
        guard let value = T(bare: bytes) else { throw mismatch(type, T.expectation) }
        return value
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        guard let form = FoundationForm.of(type) else { return try T(from: self) }
        wasRead = true
        guard let value = form.decoded(type, typed: bytes[...]) else {
            throw mismatch(type, form.expectation)
        }
        return value
    }

    private func mismatch(_ type: any Any.Type, _ expectation: String) -> DecodingError {
        let found = "expected \(expectation), found \(StateError.quoted(bytes))"
        return .typeMismatch(type, .init([], found))
    }

    /// Checks that the text is JSON if the value decoded nothing.
    func checkWasRead() throws {
        if !wasRead { _ = try element() }
    }

    private func element() throws -> ValueDecoder {
        wasRead = true
        let document = try document ?? JSONDocument.read(bytes)
        self.document = document
        try StoredVersion.check(StoredVersion.of(document), atMost: 1)
        return ValueDecoder(document, 0, at: nil)
    }
}

extension JSONDocument {
    /// Parses a text, with an error that a decoder may throw.
    static func read(_ bytes: [UInt8]) throws -> JSONDocument {
        do {
            return try JSONDocument(bytes)
        } catch {
            let found = "\(StateError.quoted(bytes)): \(error.description)"
            throw DecodingError.dataCorrupted(.init([], "expected JSON, found \(found)"))
        }
    }
}
