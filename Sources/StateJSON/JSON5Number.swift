/// Converts numbers of JSON5 to JSON.
enum JSON5Number {
    /// Infinity and NaN: no option accepts them, and JSON cannot represent them.
    private static let infinite = "a number that is not finite"

    /// The digits of a number; nil for text that is not a number of JSON5.
    ///
    /// - Returns: A whole number of up to 19 digits is written out: `1e3` and `0x3E8` are `1000`.
    static func digits(of word: String) -> String? {
        var number = word[...]
        let isNegative = number.first == "-"
        if isNegative || number.first == "+" { number.removeFirst() }
        if number == "Infinity" || number == "NaN" { return infinite }
        let sign = isNegative ? "-" : ""
        if number.hasPrefix("0x") || number.hasPrefix("0X") {
            let digits = number.dropFirst(2)
            // Int's own parser would accept a sign.
            guard digits.allSatisfy(\.isHexDigit), let value = UInt64(digits, radix: 16) else {
                return nil
            }
            return sign + String(value)
        }
        // A second sign is not allowed.
        guard let first = number.first, first != "-", let padded = padded(number),
            let exact = ExactNumber(sign + padded)
        else { return nil }
        guard exact.magnitude <= 19, let whole = exact.wholeSize else { return sign + padded }
        return (exact.isNegative ? "-" : "") + String(whole)
    }

    /// Adds a digit where one side of the point has none; nil for a point alone.
    private static func padded(_ number: Substring) -> String? {
        let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return String(number) }
        let isBare = parts[1].isEmpty || parts[1].first == "e" || parts[1].first == "E"
        if parts[0].isEmpty, isBare { return nil }
        return (parts[0].isEmpty ? "0" : parts[0]) + "." + (isBare ? "0" : "") + parts[1]
    }
}
