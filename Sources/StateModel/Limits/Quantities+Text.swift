extension Quantity {
    /// Bytes as people write them: `8MiB`, or a bare number if no unit is exact.
    package static func text(byteCount: Int64) -> String {
        text(byteCount, byteUnits.dropFirst(), "")
    }

    /// A time as people write it, in the largest unit that is exact, up to days: `7d`, `90m`,
    /// `500ms`.
    package static func text(_ time: Duration) -> String {
        let (seconds, attoseconds) = time.components
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000)
        guard !overflows else { return "\(seconds / 86_400)d" }
        return text(product + attoseconds / 1_000_000_000_000_000, timeUnits.dropFirst(), "ms")
    }

    private static func text(
        _ number: Int64,
        _ units: ArraySlice<Unit>,
        _ least: String
    ) -> String {
        guard number > 0 else { return "0" }
        let unit = units.last { number.isMultiple(of: $0.factor) } ?? (least, 1)
        return "\(number / unit.factor)\(unit.name)"
    }
}
