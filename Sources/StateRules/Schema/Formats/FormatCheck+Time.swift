// Dates and times.

extension FormatCheck {
    /// A date and a time of day with their offset from UTC.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3339#section-5.6
    static func isDateTime(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        return takeDate(&rest) && (take("T", &rest) || take("t", &rest)) && isTime(rest)
    }

    static func isDate(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        return takeDate(&rest) && rest.isEmpty
    }

    private static func takeDate(_ rest: inout ArraySlice<UInt8>) -> Bool {
        guard let year = digits(4, &rest), take("-", &rest), let month = digits(2, &rest),
            take("-", &rest), let day = digits(2, &rest), (1...12).contains(month)
        else { return false }
        return (1...dayCount(year, month)).contains(day)
    }

    /// A time of day with its offset from UTC.
    static func isTime(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        guard let hour = digits(2, &rest), take(":", &rest), let minute = digits(2, &rest),
            take(":", &rest), let second = digits(2, &rest), hour < 24, minute < 60, second < 61
        else { return false }
        if take(".", &rest) {
            let fraction = rest.prefix(while: isDigit)
            guard !fraction.isEmpty else { return false }
            rest.removeFirst(fraction.count)
        }
        guard let offset = minutesOfOffset(&rest), rest.isEmpty else { return false }
        // A leap second ends a day of UTC.
        let minuteOfDay = (hour * 60 + minute - offset + 2_880) % 1_440
        return second < 60 || minuteOfDay == 1_439
    }

    private static func minutesOfOffset(_ rest: inout ArraySlice<UInt8>) -> Int? {
        if take("Z", &rest) || take("z", &rest) { return 0 }
        let isNegative = take("-", &rest)
        guard isNegative || take("+", &rest), let hours = digits(2, &rest), take(":", &rest),
            let minutes = digits(2, &rest), hours < 24, minutes < 60
        else { return nil }
        return (hours * 60 + minutes) * (isNegative ? -1 : 1)
    }

    private static func dayCount(_ year: Int, _ month: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }

    private static func digits(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy(isDigit) else { return nil }
        rest.removeFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// A duration: weeks, or other units without one left out between two.
    ///
    /// https://www.rfc-editor.org/rfc/rfc3339#appendix-A
    static func isDuration(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text
        guard take("P", &rest), !rest.isEmpty else { return false }
        if rest.last == UInt8(ascii: "W") { return takeUnits("W", &rest) && rest.isEmpty }
        if rest.first != UInt8(ascii: "T"), !takeUnits("YMD", &rest) { return false }
        if rest.isEmpty { return true }
        return take("T", &rest) && takeUnits("HMS", &rest) && rest.isEmpty
    }

    /// Takes at least one number with its unit.
    private static func takeUnits(_ units: String, _ rest: inout ArraySlice<UInt8>) -> Bool {
        let units = Array(units.utf8)
        var last: Int?
        while let first = rest.first, isDigit(first) {
            rest = rest.drop(while: isDigit)
            guard let unit = rest.popFirst(), let place = units.firstIndex(of: unit),
                last.map({ place == $0 + 1 }) ?? true
            else { return false }
            last = place
        }
        return last != nil
    }
}
