import StateEngine
import StateJSON

/// A string, number or Boolean: stored bare.
protocol StoredScalar: Codable, Sendable {
    /// What a value of this type looks like, for error messages.
    static var expectation: String { get }

    /// The encoded form; nil for a number that is not finite.
    var encoded: EncodedValue? { get }

    /// The value of an element of a JSON text; nil if it is not of this type.
    init?(_ token: JSONToken, in document: JSONDocument)

    /// The value of bytes as a person types it, without quotes; nil if they are not of this type.
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

    init?(bare bytes: [UInt8]) { self.init(String(decoding: bytes[...].trimmed, as: UTF8.self)) }
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
        if let size = Self.plainNumber(digits) {
            self.init(exactly: size)
            return
        }
        guard let number = ExactNumber(typed: digits.trimmed), let size = number.wholeSize else {
            return nil
        }
        if !number.isNegative {
            self.init(exactly: size)
        } else if size <= Int128.min.magnitude {
            self.init(exactly: 0 &- Int128(truncatingIfNeeded: size))
        } else {
            return nil
        }
    }

    /// A number without sign, point and exponent, which most are; nil for any other, or more than
    /// 18 digits.
    private static func plainNumber(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard (1...18).contains(digits.count) else { return nil }
        var number: UInt64 = 0
        for byte in digits {
            guard byte &- 0x30 < 10 else { return nil }
            number = number &* 10 &+ UInt64(byte &- 0x30)
        }
        return number
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

    /// The shortest digits that give the same number back; a whole number has no `.0`.
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
        let trimmed = digits.trimmed
        // The exponent is the only letter, so there is no "nan" and there are no hexadecimal
        // digits.
        let isDecimal = trimmed.allSatisfy {
            $0 <= UInt8(ascii: "9") || $0 | 0x20 == UInt8(ascii: "e")
        }
        guard isDecimal, let number = Self(String(decoding: trimmed, as: UTF8.self)),
            number.isFinite, number != 0 || ExactNumber(typed: trimmed)?.isZero == true
        else { return nil }
        self = number
    }
}

extension ArraySlice<UInt8> {
    /// The slice without the white space around it.
    var trimmed: ArraySlice {
        var (start, end) = (startIndex, endIndex)
        while start < end, JSONScanner.isSpace(self[start]) { start += 1 }
        while end > start, JSONScanner.isSpace(self[end - 1]) { end -= 1 }
        return self[start..<end]
    }
}

extension Double: StoredScalar {}
extension Float: StoredScalar {}
