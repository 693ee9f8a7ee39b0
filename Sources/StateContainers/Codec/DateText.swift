import StateJSON

/// A date as ISO 8601 writes it, in UTC and in the Gregorian calendar, also before 1582.
///
/// The seconds are the decimal number of the shortest digits that give a Double back, not those of
/// the Double's exact value, which would have up to 50 digits: `0.1`, not
/// `0.1000000000000000055511151231257827`. Reading the same digits gives the same Double, whatever
/// their number. Before 2001 the number of seconds is negative and the fraction of the text counts
/// forwards, so the digits are subtracted from 1, in decimal, not as a Double.
enum DateText {
    /// Those with four digits.
    ///
    /// The year 0 is 1 BC; `Date.distantPast` is in it.
    static let years = 0...9999

    private static let secondsOfDay = 86_400

    // MARK: Writing

    /// The text of a number of seconds since 2001-01-01T00:00:00Z, given in the digits of a Double;
    /// nil if its year has no four digits.
    static func text(secondsSince2001 digits: String) -> String? {
        guard let number = ExactNumber(digits), let seconds = Double(digits) else { return nil }
        guard let whole = Int(exactly: seconds.rounded(.down)) else { return nil }
        let day = Day(number: whole.floored(by: secondsOfDay))
        guard years.contains(day.year) else { return nil }
        let second = whole - day.number * secondsOfDay
        let time = [second / 3600, second / 60 % 60, second % 60].map { $0.padded(2) }
        var fraction = fraction(of: number)
        if number.isNegative { fraction = complement(fraction) }
        let suffix = fraction.isEmpty ? "" : "." + fraction.map { String($0) }.joined()
        return "\(day.text)T\(time.joined(separator: ":"))\(suffix)Z"
    }

    /// The digits behind the point of a number, without its sign.
    private static func fraction(of number: ExactNumber) -> [UInt8] {
        let zeros = [UInt8](repeating: 0, count: max(0, -number.magnitude))
        return zeros + number.allDigits.dropFirst(max(0, number.magnitude))
    }

    /// The digits of 1 minus a fraction, whose last digit is not 0; none for none.
    private static func complement(_ fraction: [UInt8]) -> [UInt8] {
        guard let last = fraction.last else { return [] }
        return fraction.dropLast().map { 9 - $0 } + [10 - last]
    }

    // MARK: Reading

    /// The seconds since 2001-01-01T00:00:00Z; nil if the text is no date and time with an offset,
    /// or not in ``years``.
    static func secondsSince2001(_ text: ArraySlice<UInt8>) -> Double? {
        var scanner = Scanner(text)
        guard let day = scanner.day(), scanner.take(anyOf: "Tt ") != nil,
            let second = scanner.time(), let fraction = scanner.fraction(),
            let offset = scanner.offset(), scanner.isAtEnd
        else { return nil }
        let whole = day.number * secondsOfDay + second - offset
        guard years.contains(Day(number: whole.floored(by: secondsOfDay)).year) else { return nil }
        if whole >= 0 || fraction.isEmpty { return number(whole, fraction) }
        // Towards zero: the size of the whole part is 1 less, and the rest is in the fraction.
        return number(whole + 1, complement(fraction), isNegative: true)
    }

    private static func number(
        _ whole: Int,
        _ fraction: [UInt8],
        isNegative: Bool = false
    ) -> Double? {
        let digits = fraction.map { String($0) }.joined()
        let sign = isNegative || whole < 0 ? "-" : ""
        return Double("\(sign)\(whole.magnitude).\(digits)0")
    }

    /// Reads a text from its beginning; each part is nil if it is not there.
    private struct Scanner {
        private var rest: ArraySlice<UInt8>

        init(_ text: ArraySlice<UInt8>) { rest = text }

        var isAtEnd: Bool { rest.isEmpty }

        mutating func take(anyOf bytes: StaticString) -> UInt8? {
            guard let first = rest.first else { return nil }
            let isOne = bytes.withUTF8Buffer { $0.contains(first) }
            return isOne ? rest.removeFirst() : nil
        }

        mutating func day() -> Day? {
            guard let year = number(4), take(anyOf: "-") != nil, let month = number(2),
                take(anyOf: "-") != nil, let day = number(2)
            else { return nil }
            return Day(year, month, day)
        }

        /// The second of the day.
        mutating func time() -> Int? {
            guard let hour = number(2), hour < 24, take(anyOf: ":") != nil, let minute = number(2),
                minute < 60, take(anyOf: ":") != nil, let second = number(2), second < 60
            else { return nil }
            return hour * 3600 + minute * 60 + second
        }

        /// The digits of the fraction, without zeros at its end; none if there is no fraction.
        mutating func fraction() -> [UInt8]? {
            guard take(anyOf: ".,") != nil else { return [] }
            var digits: [UInt8] = []
            while let digit = take(anyOf: "0123456789") { digits.append(digit - 0x30) }
            guard !digits.isEmpty else { return nil }
            while digits.last == 0 { digits.removeLast() }
            return digits
        }

        /// The seconds by which the clock of the place is ahead of UTC; a space before it is as
        /// Foundation prints it.
        mutating func offset() -> Int? {
            if take(anyOf: "Zz") != nil { return 0 }
            _ = take(anyOf: " ")
            guard let sign = take(anyOf: "+-"), let hour = number(2), hour < 24 else { return nil }
            _ = take(anyOf: ":")
            guard let minute = number(2), minute < 60 else { return nil }
            let seconds = hour * 3600 + minute * 60
            return sign == UInt8(ascii: "-") ? -seconds : seconds
        }

        private mutating func number(_ digitCount: Int) -> Int? {
            var number = 0
            for _ in 0..<digitCount {
                guard let digit = take(anyOf: "0123456789") else { return nil }
                number = number * 10 + Int(digit - 0x30)
            }
            return number
        }
    }
}

/// A day of the Gregorian calendar.
private struct Day {
    /// The number of days since 2001-01-01.
    let number: Int
    let year: Int
    private let month: Int
    private let day: Int

    /// The days from 0000-03-01, where a cycle of 400 years begins, to 2001-01-01.
    ///
    /// A year that begins in March has its leap day at its end.
    private static let start = 730_791
    private static let daysOfCycle = 146_097

    init(number: Int) {
        self.number = number
        let days = number + Day.start
        let cycle = days.floored(by: Day.daysOfCycle)
        let dayOfCycle = days - cycle * Day.daysOfCycle
        // The day of the cycle without the leap days before it, divided by 365.
        let yearOfCycle =
            (dayOfCycle - dayOfCycle / 1460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
        let dayOfYear = dayOfCycle - Day.firstDay(yearOfCycle)
        // Months from March have 153 days in each 5.
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = (monthFromMarch + 2) % 12 + 1
        year = cycle * 400 + yearOfCycle + (month <= 2 ? 1 : 0)
    }

    /// Nil if there is no such day.
    init?(_ year: Int, _ month: Int, _ day: Int) {
        guard (1...12).contains(month), (1...31).contains(day) else { return nil }
        let yearFromMarch = month <= 2 ? year - 1 : year
        let cycle = yearFromMarch.floored(by: 400)
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        let dayOfCycle = Day.firstDay(yearFromMarch - cycle * 400) + dayOfYear
        let found = Day(number: cycle * Day.daysOfCycle + dayOfCycle - Day.start)
        // The 30th of February is another day.
        guard (found.year, found.month, found.day) == (year, month, day) else { return nil }
        self = found
    }

    /// The day on which a year of the cycle begins.
    private static func firstDay(_ yearOfCycle: Int) -> Int {
        yearOfCycle * 365 + yearOfCycle / 4 - yearOfCycle / 100
    }

    var text: String { "\(year.padded(4))-\(month.padded(2))-\(day.padded(2))" }
}

extension Int {
    /// The quotient, rounded down.
    fileprivate func floored(by divisor: Int) -> Int {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }

    fileprivate func padded(_ count: Int) -> String {
        let digits = String(self)
        return String(repeating: "0", count: Swift.max(0, count - digits.utf8.count)) + digits
    }
}
