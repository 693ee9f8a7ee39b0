import StateEngine
import StateJSON

/// Foundation's types that the standard codec stores as a person would type them.
///
/// ```
/// Date      2026-11-29T07:51:20Z     ISO 8601 in UTC, with as many fraction digits as give the same
///                                    number of seconds back (`DateText`)
/// Data      AP8=                     base64 with padding
/// Decimal   12.5                     a number of JSON, with all digits
/// URL       https://example.com/a    its absolute text
/// ```
///
/// Left to themselves they are a number of seconds since 2001, an array of numbers, an exponent with
/// eight parts of a mantissa, and an object: nobody types that. Foundation's own coders make the same
/// exceptions.
///
/// The types are found by their names, because importing Foundation was rejected: a program that
/// stores only its own types would link it (it made `stated` 6.6 MB larger and start later, see
/// docs/decisions/no-foundation.md). So a value is reached through what every type offers: what it
/// encodes of itself is rewritten here, and what it decodes is made here. Data alone is read and made
/// as a collection of bytes: a megabyte would be a million elements.
enum FoundationForm {
    case date, data, decimal, url

    // MARK: Finding

    /// The form of a type; nil if it is not one of Foundation's four.
    static func of<T>(_ type: T.Type) -> FoundationForm? {
        // Each of the four has one of these sizes. A type of another size is not looked up, which
        // takes 12 ns.
        switch MemoryLayout<T>.size {
        case 8, 16, 20: found(type)
        default: nil
        }
    }

    /// What was found for each type that was looked up.
    private static let known = StateLock<[ObjectIdentifier: FoundationForm?]>([:])

    private static func found(_ type: any Any.Type) -> FoundationForm? {
        known.withLock { known in
            let id = ObjectIdentifier(type)
            if let form = known[id] { return form }
            let form = FoundationForm(named: String(reflecting: type))
            known.updateValue(form, forKey: id)
            return form
        }
    }

    /// Foundation of Swift 6 has the types in FoundationEssentials; Foundation of macOS has them
    /// itself.
    private init?(named name: String) {
        switch name {
        case "FoundationEssentials.Date", "Foundation.Date": self = .date
        case "FoundationEssentials.Data", "Foundation.Data": self = .data
        case "FoundationEssentials.Decimal", "Foundation.Decimal": self = .decimal
        case "FoundationEssentials.URL", "Foundation.URL": self = .url
        default: return nil
        }
    }

    /// What a value looks like, for error messages.
    var expectation: String {
        switch self {
        case .date: "a date such as 2026-11-29T07:51:20Z"
        case .data: "bytes in base64"
        case .decimal: "a decimal number of at most 38 digits"
        case .url: "a URL"
        }
    }

    // MARK: Encoding

    /// The stored form of a value of the type.
    ///
    /// - Throws: `EncodingError` if there is none: a date outside of ``DateText/years``, or a number
    ///   that is none.
    func encoded<T: Encodable>(_ value: T, at place: CodingPlace?) throws -> EncodedValue {
        if case .data = self, let bytes = value as? any Collection<UInt8> {
            return .string(FoundationForm.base64(Array(bytes)))
        }
        let encoder = ValueEncoder(at: place)
        try value.encode(to: encoder)
        switch (self, encoder.value?.settled) {
        case (.date, .number(let digits)):
            guard let text = DateText.text(secondsSince2001: digits) else {
                let years = "\(DateText.years.lowerBound) to \(DateText.years.upperBound)"
                throw encoder.fault(
                    value,
                    "the date \(digits) seconds after 2001-01-01T00:00:00Z is not in the years "
                        + "\(years), which ISO 8601 can name"
                )
            }
            return .string(text)
        case (.decimal, .object(let members)):
            guard let parts = DecimalParts(members) else { break }
            guard let digits = parts.digits else {
                throw encoder.fault(
                    value,
                    "the Decimal is not a number, and JSON cannot represent it"
                )
            }
            return .number(digits)
        case (.url, .object(let members)):
            guard case .string(let relative)? = members.member("relative") else { break }
            guard case .string(let base)? = members.member("base") else { return .string(relative) }
            return .string(URLText.resolve(relative, against: base))
        default: break
        }
        throw encoder.fault(value, "\(T.self) encodes itself in an unknown form")
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        bytes.withUnsafeBytes { Base64.append($0, to: &text) }
        return String(decoding: text, as: UTF8.self)
    }

    // MARK: Decoding

    /// The value of an element of a JSON text; nil if it is not of this form.
    func decoded<T: Decodable>(
        _ type: T.Type,
        _ token: JSONToken,
        in document: JSONDocument
    ) -> T? {
        switch (token.kind, self) {
        case (.string, _), (.number, .decimal):
            // The bytes between the quotes, or those of the number.
            decoded(type, typed: document.digits(of: token))
        case (.escapedString, _): decoded(type, typed: Array(document.text(of: token).utf8)[...])
        default: nil
        }
    }

    /// The value of a text as a person types it, without quotes; nil if it is not of this form.
    func decoded<T: Decodable>(_ type: T.Type, typed text: ArraySlice<UInt8>) -> T? {
        switch self {
        case .date:
            return DateText.secondsSince2001(text.trimmed).flatMap {
                FoundationForm.own(type, .number("\($0)"))
            }
        case .data:
            return Base64.decoded(typed: text).flatMap { FoundationForm.collection(type, of: $0) }
        case .decimal:
            guard let number = ExactNumber(typed: text.trimmed), let parts = DecimalParts(number)
            else { return nil }
            return FoundationForm.own(type, .object(parts.members))
        case .url:
            guard let text = String(validating: text.trimmed, as: UTF8.self), !text.isEmpty else {
                return nil
            }
            let members = EncodedObject()
            members.members = [("relative", .string(text))]
            return FoundationForm.own(type, .object(members))
        }
    }

    /// The value that the type decodes from its own form; nil if it refuses it.
    private static func own<T: Decodable>(_ type: T.Type, _ form: EncodedValue) -> T? {
        guard let text = try? JSONWriter.text(form), let document = try? JSONDocument(text) else {
            return nil
        }
        return try? T(from: ValueDecoder(document, 0, at: nil))
    }

    private static func collection<T>(_ type: T.Type, of bytes: [UInt8]) -> T? {
        func make<C: RangeReplaceableCollection<UInt8>>(_ type: C.Type) -> T? { C(bytes) as? T }
        return (type as? any RangeReplaceableCollection<UInt8>.Type).flatMap { make($0) }
    }
}

/// What a `Decimal` encodes of itself: a number of at most 128 bits, times a power of ten.
private struct DecimalParts {
    let isNegative: Bool
    let mantissa: UInt128
    let exponent: Int
    /// A number of this length of 0 that is negative is none.
    let isNumber: Bool

    private static let exponents = -128...127
    private static let wordCount = 8

    init?(_ object: EncodedObject) {
        guard case .integer(let exponent)? = object.member("exponent"),
            case .integer(let length)? = object.member("length"),
            case .bool(let isNegative)? = object.member("isNegative"),
            case .array(let words)? = object.member("mantissa")?.settled
        else { return nil }
        var mantissa: UInt128 = 0
        for word in words.elements.prefix(Int(length)).reversed() {
            guard case .integer(let word) = word else { return nil }
            mantissa = mantissa << 16 | UInt128(word)
        }
        self.exponent = Int(exponent)
        self.isNegative = isNegative
        self.mantissa = mantissa
        isNumber = length > 0 || !isNegative
    }

    /// The parts of a number; nil if it cannot be held exactly.
    init?(_ number: ExactNumber) {
        var mantissa: UInt128 = 0
        // A zero in `number` has no digits, and any other digit makes the next step larger.
        for digit in number.allDigits {
            guard let next = DecimalParts.appending(digit, to: mantissa) else { return nil }
            mantissa = next
        }
        var exponent = number.exponent
        while exponent > DecimalParts.exponents.upperBound {
            guard let next = DecimalParts.appending(0, to: mantissa) else { return nil }
            mantissa = next
            exponent -= 1
        }
        guard exponent >= DecimalParts.exponents.lowerBound else { return nil }
        self.mantissa = mantissa
        self.exponent = exponent
        isNegative = number.isNegative
        isNumber = true
    }

    private static func appending(_ digit: UInt8, to mantissa: UInt128) -> UInt128? {
        let (product, overflows) = mantissa.multipliedReportingOverflow(by: 10)
        let (sum, overflowsToo) = product.addingReportingOverflow(UInt128(digit))
        return overflows || overflowsToo ? nil : sum
    }

    /// The number in decimal digits, without exponent and without zeros at the end of a fraction;
    /// nil if it is none.
    var digits: String? {
        guard isNumber else { return nil }
        guard mantissa > 0 else { return "0" }
        var digits = String(mantissa)
        var exponent = exponent
        while exponent < 0, digits.last == "0" {
            digits.removeLast()
            exponent += 1
        }
        if exponent >= 0 {
            digits += String(repeating: "0", count: exponent)
        } else {
            let missing = max(0, 1 - exponent - digits.utf8.count)
            digits = String(repeating: "0", count: missing) + digits
            digits.insert(".", at: digits.index(digits.endIndex, offsetBy: exponent))
        }
        return isNegative ? "-" + digits : digits
    }

    /// The form that `Decimal` decodes.
    var members: EncodedObject {
        let words = EncodedArray()
        words.elements = (0..<DecimalParts.wordCount).map {
            .integer(Int64(mantissa >> UInt128(16 * $0) & 0xFFFF))
        }
        let length = (UInt128.bitWidth - mantissa.leadingZeroBitCount + 15) / 16
        let object = EncodedObject()
        object.members = [
            ("exponent", .integer(Int64(exponent))), ("length", .integer(Int64(length))),
            ("isNegative", .bool(isNegative)), ("isCompact", .bool(true)),
            ("mantissa", .array(words)),
        ]
        return object
    }
}
