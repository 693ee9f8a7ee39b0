/// Converts numbers of JSON5 to JSON.
enum JSON5Number {
    /// Why a word is not a value.
    static func fault(of word: String) -> String {
        let shown = word.prefix(64)
        if ["Infinity", "NaN"].contains(word.drop { $0 == "+" || $0 == "-" }) {
            return "'\(shown)' cannot be stored: JSON has no such number"
        }
        return "unexpected '\(shown)'; expected a number, true, false, null, or a string in quotes"
    }

    /// The digits of a number; nil for text that is not a number of JSON5, or not a finite one.
    ///
    /// - Returns: A whole number of up to 19 digits is written out: `1e3` and `0x3E8` are `1000`.
    static func digits(of word: String) -> String? {
        var number = word[...]
        let isNegative = number.first == "-"
        if isNegative || number.first == "+" { number.removeFirst() }
        let sign = isNegative ? "-" : ""
        if number.hasPrefix("0x") || number.hasPrefix("0X") {
            let digits = number.dropFirst(2)
            // Int's own parser would accept a sign.
            guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
            return decimal(digits).map { sign + $0 }
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

    /// Hexadecimal digits in decimal ones, of any length; nil for none.
    private static func decimal(_ digits: Substring) -> String? {
        if let value = UInt64(digits, radix: 16) { return String(value) }
        guard (1...hexadecimalLimit).contains(digits.utf8.count) else { return nil }
        // The least significant first, nine decimal digits each.
        var parts: [UInt64] = [0]
        for digit in digits {
            var carry = UInt64(digit.hexDigitValue ?? 0)
            for index in parts.indices {
                let value = parts[index] * 16 + carry
                (parts[index], carry) = (value % 1_000_000_000, value / 1_000_000_000)
            }
            if carry > 0 { parts.append(carry) }
        }
        let rest = parts.dropLast().reversed().map { part in
            String(repeating: "0", count: 9 - String(part).utf8.count) + String(part)
        }
        return String(parts.last ?? 0) + rest.joined()
    }

    /// The most hexadecimal digits that are read: the conversion takes their square.
    private static let hexadecimalLimit = 1_000
}
