import StateEngine
import StateJSON

extension JSONValue {
    /// The value that the bytes of an entry stand for.
    ///
    /// JSON if they begin an object or an array; else a number, `true`, `false` or `null`; else a
    /// string.
    init(stored bytes: [UInt8]) throws {
        let first = bytes.first { !JSONScanner.isSpace($0) }
        if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
            self.init(try JSONDocument.read(bytes), 0)
        } else if let document = try? JSONDocument(bytes), document.tokens[0].kind.isBare {
            self.init(document, 0)
        } else {
            self = .string(try StoredDecoder(bytes).decode(String.self))
        }
    }
}

extension JSONToken.Kind {
    /// Whether such a value is stored in its JSON form, without quotes or brackets.
    fileprivate var isBare: Bool {
        switch self {
        case .null, .true, .false, .number: true
        case .string, .escapedString, .array, .object: false
        }
    }
}
