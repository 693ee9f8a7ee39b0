/// Writes metrics, each with its description and type.
struct MetricsText {
    private(set) var bytes: [UInt8] = []

    typealias Row = (labels: [(String, String)], value: Double)

    mutating func gauge(_ name: String, _ help: String, _ value: Double) {
        family(name, "gauge", help, [([], value)])
    }

    mutating func gauge(_ name: String, _ help: String, _ rows: [Row]) {
        family(name, "gauge", help, rows)
    }

    mutating func counter(_ name: String, _ help: String, _ value: Double) {
        family(name, "counter", help, [([], value)])
    }

    mutating func counter(_ name: String, _ help: String, _ rows: [Row]) {
        family(name, "counter", help, rows)
    }

    /// `counts` has one more than `bounds`, for all that is above.
    mutating func histogram(
        _ name: String,
        _ help: String,
        bounds: [Double],
        counts: [Int],
        sum: Double
    ) {
        head(name, "histogram", help)
        var total = 0
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? "\(bounds[index])" : "+Inf"
            row("\(name)_bucket", [("le", bound)], Double(total))
        }
        row("\(name)_sum", [], sum)
        row("\(name)_count", [], Double(total))
    }

    /// Nothing for no rows: a type without samples is allowed, and says nothing.
    private mutating func family(_ name: String, _ type: String, _ help: String, _ rows: [Row]) {
        guard !rows.isEmpty else { return }
        head(name, type, help)
        for (labels, value) in rows { row(name, labels, value) }
    }

    private mutating func head(_ name: String, _ type: String, _ help: String) {
        add("# HELP stated_\(name) \(help)\n# TYPE stated_\(name) \(type)\n")
    }

    private mutating func row(_ name: String, _ labels: [(String, String)], _ value: Double) {
        let shown = labels.map { "\($0.0)=\"\(MetricsText.escaped($0.1))\"" }.joined(separator: ",")
        // Whole numbers have no fraction.
        let number = value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
        add("stated_\(name)\(shown.isEmpty ? "" : "{\(shown)}") \(number)\n")
    }

    /// Escapes `\`, `"` and newlines.
    ///
    /// By bytes: in Swift, a quote and a combining accent after it are one character.
    private static func escaped(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"), UInt8(ascii: "\""): bytes += [UInt8(ascii: "\\"), byte]
            case UInt8(ascii: "\n"): bytes += "\\n".utf8
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private mutating func add(_ text: String) { bytes += text.utf8 }
}
