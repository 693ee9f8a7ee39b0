import StateModel

/// A number in decimal digits as a person writes it: JSON's form, and also with a `+`, with zeros before
/// it, without a digit on one side of its point, and with white space around it.
package struct NumberText {
    /// The number without white space.
    package let text: String
    private let isNegative: Bool
    /// The digits before and after the point, together.
    private let digits: ArraySlice<UInt8>
    private let exponent: Int

    /// Beyond every exponent that means something; small enough to be added to.
    private static let exponentLimit = 1 << 40

    package init?(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes.drop(while: JSONScanner.isSpace)
        while let last = rest.last, JSONScanner.isSpace(last) { rest.removeLast() }
        text = String(decoding: rest, as: UTF8.self)
        isNegative = rest.first == UInt8(ascii: "-")
        if isNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }

        var digits = Self.takeDigits(&rest)
        var exponent = 0
        if rest.first == UInt8(ascii: ".") {
            rest.removeFirst()
            let fraction = Self.takeDigits(&rest)
            exponent = -fraction.count
            digits += fraction
        }
        guard !digits.isEmpty else { return nil }
        if let first = rest.first {
            rest.removeFirst()
            guard first | 0x20 == UInt8(ascii: "e"), let power = Self.exponent(rest) else {
                return nil
            }
            exponent += power
        }
        (self.digits, self.exponent) = (digits, exponent)
    }

    private static func takeDigits(_ text: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let digits = text.prefix { $0 &- 0x30 < 10 }
        text.removeFirst(digits.count)
        return digits
    }

    private static func exponent(_ text: ArraySlice<UInt8>) -> Int? {
        var rest = text
        let isNegative = rest.first == UInt8(ascii: "-")
        if isNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
        let digits = takeDigits(&rest)
        guard rest.isEmpty, !digits.isEmpty else { return nil }
        let size = min(Int(String(decoding: digits, as: UTF8.self)) ?? exponentLimit, exponentLimit)
        return isNegative ? -size : size
    }

    /// Whether it is 0, however it is written.
    private var isZero: Bool { digits.allSatisfy { $0 == UInt8(ascii: "0") } }

    /// The whole number that this is, exactly; nil where it has a fraction, or `Number` cannot hold it.
    package func integer<Number: FixedWidthInteger>(as type: Number.Type) -> Number? {
        guard !isZero else { return 0 }
        var (significant, exponent) = (digits.drop { $0 == UInt8(ascii: "0") }, exponent)
        while significant.last == UInt8(ascii: "0") {
            significant.removeLast()
            exponent += 1
        }
        // 2^128 has 39 digits.
        guard exponent >= 0, significant.count + exponent <= 40 else { return nil }
        let zeros = String(repeating: "0", count: exponent)
        return Number(
            (isNegative ? "-" : "") + String(decoding: significant, as: UTF8.self) + zeros
        )
    }

    /// The nearest number; nil where that is infinite, or 0 for what is not 0.
    package func nearest<Number: BinaryFloatingPoint & LosslessStringConvertible>(
        as type: Number.Type
    ) -> Number? {
        guard let number = Number(text), number.isFinite, number != 0 || isZero else { return nil }
        return number
    }
}
