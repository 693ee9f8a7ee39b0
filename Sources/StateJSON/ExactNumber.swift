package import StateModel

/// A decimal number as it is written, of any length: what JSON Schema compares.
///
/// A Double cannot distinguish 2^53 + 1 from 2^53.
package struct ExactNumber: Hashable, Sendable {
    /// Digits without zeros on either side, none for 0; as one number if they fit.
    private enum Digits: Hashable, Sendable {
        case few(UInt64)
        case many([UInt8])
    }

    package let isNegative: Bool
    private let digits: Digits
    /// The number of digits.
    private let count: Int
    /// The power of ten by which the digits are multiplied.
    package let exponent: Int

    /// Beyond every meaningful exponent; small enough to be added to.
    private static let exponentLimit = 1 << 40
    /// This many digits always fit into 64 bits.
    private static let fewDigitCount = 19

    /// Reads a number of JSON; nil for any other text.
    ///
    /// - Complexity: O(*n*); it allocates only for more than 19 digits.
    package init?(_ text: Bytes) { self.init(Scanner(text, isTyped: false)) }

    /// Reads a number as a person types it: JSON's form, also with a `+`, with leading zeros, and
    /// without a digit on one side of its point; nil for any other text.
    ///
    /// - Complexity: as ``init(_:)-(Bytes)``.
    package init?(typed text: ArraySlice<UInt8>) {
        guard let number = text.withUnsafeBytes({ ExactNumber(Scanner($0, isTyped: true)) }) else {
            return nil
        }
        self = number
    }

    private init?(_ start: Scanner) {
        var scanner = start
        guard scanner.scan() else { return nil }
        isNegative = scanner.isNegative && scanner.digitCount > 0
        count = scanner.digitCount
        exponent = scanner.digitCount == 0 ? 0 : scanner.exponent
        if scanner.digitCount <= ExactNumber.fewDigitCount {
            digits = .few(scanner.number)
        } else {
            digits = .many(scanner.significantDigits)
        }
    }

    /// The same from text.
    package init?(_ text: String) {
        var text = text
        guard let number = text.withUTF8({ ExactNumber(Bytes($0)) }) else { return nil }
        self = number
    }

    /// Whether it has no fraction: `1.0` has none.
    package var isInteger: Bool { exponent >= 0 }

    package var isZero: Bool { count == 0 }

    /// The number of places before the point.
    package var magnitude: Int { count + exponent }

    /// The integer without its sign, exactly; nil if there is a fraction, or it needs more than 128
    /// bits.
    package var wholeSize: UInt128? {
        // 2^128 has 39 digits.
        guard isInteger, magnitude <= 39 else { return nil }
        if case .few(let number) = digits, magnitude <= ExactNumber.fewDigitCount {
            return UInt128(number * ExactNumber.power(exponent))
        }
        let digits = allDigits + [UInt8](repeating: 0, count: exponent)
        return UInt128(digits.map { String($0) }.joined())
    }

    // MARK: Order

    /// Below 0, 0 or above 0, if this is below, equal to or above `other`.
    package func order(to other: ExactNumber) -> Int {
        if isZero || other.isZero || isNegative != other.isNegative { return sign - other.sign }
        return isNegative ? other.orderOfSize(to: self) : orderOfSize(to: other)
    }

    private var sign: Int { isZero ? 0 : isNegative ? -1 : 1 }

    private func orderOfSize(to other: ExactNumber) -> Int {
        if magnitude != other.magnitude { return magnitude < other.magnitude ? -1 : 1 }
        if case .few(let mine) = digits, case .few(let theirs) = other.digits {
            // Both have the same magnitude: the one with fewer digits gets zeros, up to 19 digits.
            let (left, right) = (
                mine * ExactNumber.power(other.count - count),
                theirs * ExactNumber.power(count - other.count)
            )
            return left < right ? -1 : left > right ? 1 : 0
        }
        let (left, right) = (allDigits, other.allDigits)
        for index in 0..<max(left.count, right.count) {
            let (mine, theirs) = (
                index < left.count ? left[index] : 0, index < right.count ? right[index] : 0
            )
            if mine != theirs { return mine < theirs ? -1 : 1 }
        }
        return 0
    }

    private static func power(_ exponent: Int) -> UInt64 {
        var power: UInt64 = 1
        for _ in 0..<max(0, exponent) { power *= 10 }
        return power
    }

    /// A text that is the same for equal numbers: the sign, the digits and the exponent.
    package var canonicalText: String {
        let text = String(decoding: allDigits.map { $0 + 0x30 }, as: UTF8.self)
        return "\(isNegative ? "-" : "")\(text)e\(exponent)"
    }

    /// The digits, without the zeros on either side.
    package var allDigits: [UInt8] {
        switch digits {
        case .many(let digits): return digits
        case .few(var number):
            var digits = [UInt8](repeating: 0, count: count)
            for index in (0..<count).reversed() {
                digits[index] = UInt8(number % 10)
                number /= 10
            }
            return digits
        }
    }

    // MARK: Multiples

    /// Whether it can be a divisor of ``isMultiple(of:)``: above 0, at most 19 digits.
    package var canDivide: Bool {
        guard case .few(let number) = digits else { return false }
        return number > 0 && !isNegative
    }

    /// Whether this divided by `divisor`, which must be a ``canDivide`` number, has no fraction,
    /// exactly: 0.3 is a multiple of 0.1.
    package func isMultiple(of divisor: ExactNumber) -> Bool {
        guard case .few(let modulus) = divisor.digits, modulus > 0 else { return false }
        if isZero { return true }
        // The digits have no zero at the end, so they are not a multiple of 10.
        guard exponent >= divisor.exponent else { return false }
        let rest: UInt64 =
            switch digits {
            case .few(let number): number % modulus
            case .many(let digits):
                digits.reduce(0) { rest, digit in
                    ExactNumber.product(rest, 10, modulus: modulus, plus: UInt64(digit))
                }
            }
        let shift = ExactNumber.powerOfTen(exponent - divisor.exponent, modulus: modulus)
        return ExactNumber.product(rest, shift, modulus: modulus) == 0
    }

    private static func product(
        _ left: UInt64,
        _ right: UInt64,
        modulus: UInt64,
        plus: UInt64 = 0
    ) -> UInt64 {
        let product = UInt128(left) * UInt128(right) + UInt128(plus)
        return UInt64(truncatingIfNeeded: product % UInt128(modulus))
    }

    private static func powerOfTen(_ exponent: Int, modulus: UInt64) -> UInt64 {
        var (power, base, rest) = (1 % modulus, 10 % modulus, exponent)
        while rest > 0 {
            if rest & 1 == 1 { power = product(power, base, modulus: modulus) }
            base = product(base, base, modulus: modulus)
            rest >>= 1
        }
        return power
    }

    // MARK: Reading

    /// Scans the text of a number.
    private struct Scanner {
        private let text: Bytes
        private let isTyped: Bool
        private var index = 0
        private(set) var isNegative = false
        private(set) var exponent = 0
        /// Significant digits so far, without the zeros that may turn out to be at the end.
        private(set) var digitCount = 0
        private(set) var number: UInt64 = 0
        private var firstDigit = 0
        private var zeroCount = 0

        init(_ text: Bytes, isTyped: Bool) {
            self.text = text
            self.isTyped = isTyped
        }

        private mutating func skip(_ byte: UInt8) -> Bool {
            guard index < text.count, text[index] == byte else { return false }
            index += 1
            return true
        }

        mutating func scan() -> Bool {
            isNegative = takeSign(orPlus: isTyped)
            guard isTyped ? takeTypedPlaces() : takePlaces() else { return false }
            exponent += zeroCount
            if skip(UInt8(ascii: "e")) || skip(UInt8(ascii: "E")) {
                guard let power = takeExponent() else { return false }
                exponent += power
            }
            return index == text.count
        }

        /// - Returns: Whether it is a minus.
        private mutating func takeSign(orPlus: Bool) -> Bool {
            if skip(UInt8(ascii: "-")) { return true }
            if orPlus { _ = skip(UInt8(ascii: "+")) }
            return false
        }

        private mutating func takePlaces() -> Bool {
            guard skip(UInt8(ascii: "0")) || takeDigits(isFraction: false) else { return false }
            return !skip(UInt8(ascii: ".")) || takeDigits(isFraction: true)
        }

        private mutating func takeTypedPlaces() -> Bool {
            let isWhole = takeDigits(isFraction: false)
            return skip(UInt8(ascii: ".")) && takeDigits(isFraction: true) || isWhole
        }

        private mutating func takeDigits(isFraction: Bool) -> Bool {
            let start = index
            while index < text.count, text[index] &- 0x30 < 10 {
                take(text[index] - 0x30)
                if isFraction { exponent -= 1 }
                index += 1
            }
            return index > start
        }

        private mutating func take(_ digit: UInt8) {
            if digit == 0 {
                if digitCount > 0 { zeroCount += 1 }
                return
            }
            if digitCount == 0 { firstDigit = index }
            digitCount += zeroCount + 1
            if digitCount <= ExactNumber.fewDigitCount {
                number = number * ExactNumber.power(zeroCount + 1) + UInt64(digit)
            }
            zeroCount = 0
        }

        private mutating func takeExponent() -> Int? {
            let isNegative = takeSign(orPlus: true)
            let start = index
            var size = 0
            while index < text.count, text[index] &- 0x30 < 10 {
                size = min(size * 10 + Int(text[index] - 0x30), ExactNumber.exponentLimit)
                index += 1
            }
            guard index > start else { return nil }
            return isNegative ? -size : size
        }

        var significantDigits: [UInt8] {
            var digits: [UInt8] = []
            digits.reserveCapacity(digitCount)
            var index = firstDigit
            while digits.count < digitCount {
                if text[index] != UInt8(ascii: ".") { digits.append(text[index] - 0x30) }
                index += 1
            }
            return digits
        }
    }
}
