import StateEngine
import StateJSON

/// A string, number or Boolean: what is stored bare.
protocol StoredScalar: Codable, Sendable {
    /// What a value of this type is, for the message of an error.
    static var expectation: String { get }

    /// How it is written; nil for a number that is not finite.
    var encoded: EncodedValue? { get }

    /// The value of an element of a JSON text; nil where it is none of this type.
    init?(_ token: JSONToken, in document: JSONDocument)

    /// The value that bytes are, written bare as a person types it; nil where they are none.
    init?(bare bytes: [UInt8])
}

extension String: StoredScalar {
    static var expectation: String { "a string in UTF-8" }

    var encoded: EncodedValue? { .string(self) }

    init?(_ token: JSONToken, in document: JSONDocument) {
        guard token.kind == .string || token.kind == .escapedString else { return nil }
        self = document.text(of: token)
    }

    init?(bare bytes: [UInt8]) { self.init(validating: bytes, as: UTF8.self) }
}

extension Bool: StoredScalar {
    static var expectation: String { "true or false" }

    var encoded: EncodedValue? { .bool(self) }

    init?(_ token: JSONToken, in document: JSONDocument) {
        guard token.kind == .true || token.kind == .false else { return nil }
        self = token.kind == .true
    }

    init?(bare bytes: [UInt8]) {
        let words = bytes.split(whereSeparator: JSONScanner.isSpace)
        guard let word = words.first, words.count == 1 else { return nil }
        self.init(String(decoding: word, as: UTF8.self))
    }
}

extension StoredScalar where Self: FixedWidthInteger {
    static var expectation: String { "a whole number from \(Self.min) to \(Self.max)" }

    var encoded: EncodedValue? { Int64(exactly: self).map { .integer($0) } ?? .number("\(self)") }

    init?(_ token: JSONToken, in document: JSONDocument) {
        guard token.kind == .number else { return nil }
        self.init(digits: document.digits(of: token))
    }

    init?(bare bytes: [UInt8]) { self.init(digits: bytes[...]) }

    private init?(digits: ArraySlice<UInt8>) {
        var value: Self = 0
        // Few numbers have a sign, a point or an exponent, and most have few digits.
        guard !digits.isEmpty, digits.count <= 2 || (digits.count <= 18 && Self.bitWidth >= 64)
        else {
            guard let number = NumberText(digits)?.integer(as: Self.self) else { return nil }
            self = number
            return
        }
        for byte in digits {
            guard byte &- 0x30 < 10 else {
                guard let number = NumberText(digits)?.integer(as: Self.self) else { return nil }
                self = number
                return
            }
            value = value &* 10 &+ Self(truncatingIfNeeded: byte &- 0x30)
        }
        self = value
    }
}

extension Int: StoredScalar {}
extension Int8: StoredScalar {}
extension Int16: StoredScalar {}
extension Int32: StoredScalar {}
extension Int64: StoredScalar {}
extension Int128: StoredScalar {}
extension UInt: StoredScalar {}
extension UInt8: StoredScalar {}
extension UInt16: StoredScalar {}
extension UInt32: StoredScalar {}
extension UInt64: StoredScalar {}
extension UInt128: StoredScalar {}

extension StoredScalar where Self: BinaryFloatingPoint & LosslessStringConvertible {
    static var expectation: String { "a number that \(Self.self) can hold" }

    /// The shortest digits that give the same number back; a whole number without `.0`.
    var encoded: EncodedValue? {
        guard isFinite else { return nil }
        let digits = description
        return .number(digits.hasSuffix(".0") ? String(digits.dropLast(2)) : digits)
    }

    init?(_ token: JSONToken, in document: JSONDocument) {
        guard token.kind == .number else { return nil }
        self.init(digits: document.digits(of: token))
    }

    init?(bare bytes: [UInt8]) { self.init(digits: bytes[...]) }

    private init?(digits: ArraySlice<UInt8>) {
        // No letters but that of the exponent, so no "nan" and no hexadecimal digits.
        let isDecimal = digits.allSatisfy {
            $0 <= UInt8(ascii: "9") || $0 | 0x20 == UInt8(ascii: "e")
        }
        if isDecimal, let number = Self(String(decoding: digits, as: UTF8.self)), number.isFinite,
            number != 0
        {
            self = number
            return
        }
        guard let number = NumberText(digits)?.nearest(as: Self.self) else { return nil }
        self = number
    }
}

extension Double: StoredScalar {}
extension Float: StoredScalar {}
