/// Quantities as people write them, on a command line or in a configuration.
package enum Quantity {
    typealias Unit = (name: String, factor: Int64)

    static let byteUnits: [Unit] = [
        ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
    ]
    static let timeUnits: [Unit] = [
        ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]
    private static let week: Unit = ("w", 604_800_000)

    /// A number of things: `1000000`, in decimal digits.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``: what is expected, and the text that was read.
    package static func count(
        _ text: String,
        in range: ClosedRange<Int>
    ) throws(StateError) -> Int {
        guard let (number, unit) = leadingNumber(text[...]), unit.isEmpty else {
            throw StateError(.err, "a number such as \(example(range)), not '\(text)'")
        }
        let bounds = Int64(range.lowerBound)...Int64(range.upperBound)
        return Int(try check(number, text, in: bounds) { String($0) })
    }

    /// A number of bytes: `512`, `512B`, `64KiB`, `8MiB`, `1GiB`, `2TiB`.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``: what is expected, and the text that was read.
    package static func byteCount(
        _ text: String,
        in range: ClosedRange<Int64> = 0...Int64.max
    ) throws(StateError) -> Int64 {
        guard let (number, unit) = leadingNumber(text[...]),
            let factor = factor(of: unit.isEmpty ? "B" : unit, in: byteUnits)
        else {
            throw StateError(
                .err,
                "bytes such as 65536, 64KiB, 8MiB, 1GiB or 2TiB, not '\(text)'"
            )
        }
        return try check(number.flatMap { multiplied($0, factor) }, text, in: range) {
            self.text(byteCount: $0)
        }
    }

    /// 100 years, so that the sum of the longest time and any date fits into a number.
    private static let longestDays: Int64 = 36_500

    /// A time: `500ms`, `30s`, `5m`, `12h`, `7d`, `2w`, or several in a row, `1h30m`; 0 needs no
    /// unit.
    ///
    /// At most 100 years.
    ///
    /// - Throws: ``StateError/Code/invalidRequest``: what is expected, and the text that was read.
    package static func duration(_ text: String) throws(StateError) -> Duration {
        if text == "0" { return .zero }
        var rest = text[...]
        var sum: Int64? = 0
        repeat {
            guard let (number, tail) = leadingNumber(rest) else { throw notATime(text) }
            let unit = tail.prefix { !isDigit($0) }
            guard let factor = factor(of: unit, in: timeUnits + [week]) else {
                throw notATime(text)
            }
            rest = tail[unit.endIndex...]
            let part = number.flatMap { multiplied($0, factor) }
            sum = sum.flatMap { sum in part.flatMap { added(sum, $0) } }
        } while !rest.isEmpty
        guard let sum, sum <= longestDays * 86_400_000 else {
            throw StateError(.err, "at most \(longestDays)d (100 years), not '\(text)'")
        }
        return .milliseconds(sum)
    }

    // MARK: Parts

    private static func isDigit(_ character: Character) -> Bool {
        character.isASCII && character.isNumber
    }

    /// The digits at the start of `text`, and what follows; the number is nil if it is too large.
    private static func leadingNumber(_ text: Substring) -> (number: Int64?, unit: Substring)? {
        let digits = text.prefix(while: isDigit)
        guard !digits.isEmpty else { return nil }
        return (Int64(digits), text[digits.endIndex...])
    }

    private static func factor(of unit: Substring, in units: [Unit]) -> Int64? {
        units.first { $0.name == unit }?.factor
    }

    private static func multiplied(_ number: Int64, _ factor: Int64) -> Int64? {
        let (product, overflows) = number.multipliedReportingOverflow(by: factor)
        return overflows ? nil : product
    }

    private static func added(_ first: Int64, _ second: Int64) -> Int64? {
        let (sum, overflows) = first.addingReportingOverflow(second)
        return overflows ? nil : sum
    }

    private static func check(
        _ number: Int64?,
        _ text: String,
        in range: ClosedRange<Int64>,
        _ shown: (Int64) -> String
    ) throws(StateError) -> Int64 {
        guard let number, number <= range.upperBound else {
            throw StateError(.err, "at most \(shown(range.upperBound)), not '\(text)'")
        }
        guard number >= range.lowerBound else {
            throw StateError(.err, "at least \(shown(range.lowerBound)), not '\(text)'")
        }
        return number
    }

    private static func example(_ range: ClosedRange<Int>) -> Int {
        Swift.min(Swift.max(1_000, range.lowerBound), range.upperBound)
    }

    private static func notATime(_ text: String) -> StateError {
        StateError(.err, "a time such as 500ms, 30s, 5m, 12h, 7d, 2w or 1h30m, not '\(text)'")
    }
}
