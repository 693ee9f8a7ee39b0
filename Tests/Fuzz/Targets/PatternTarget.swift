import StateClient
import StateContainers
import StateEngine
import StateJSON
import StateRules

/// Patterns and schemas, and what they are matched with; the parts of the input stand between zero bytes.
///
/// ```
/// s <schema> 0 <value>    r <regular expression> 0 <text>    g <glob> 0 <key>    q <quantity>    j <JSON>
/// o <a line of an import>    k <a line of sysctl>    e, i, p <a file to import: env, INI, properties>
/// l <key> 0 <value>
/// ```
enum PatternTarget {
    static func run(_ bytes: Bytes) throws {
        guard let kind = bytes.first else { return }
        let parts = bytes.slice(1, bytes.count).split(
            separator: 0,
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        let (first, second) = (Array(parts[0]), parts.count > 1 ? Array(parts[1]) : [])
        switch kind {
        case UInt8(ascii: "s"): schema(first, second)
        case UInt8(ascii: "r"): expression(first, second)
        case UInt8(ascii: "g"): glob(first, second)
        case UInt8(ascii: "q"): quantity(String(decoding: first, as: UTF8.self))
        case UInt8(ascii: "j"): json(first)
        case UInt8(ascii: "o"): first.withUnsafeBytes { _ = try? ImportLine($0) }
        case UInt8(ascii: "k"): first.withUnsafeBytes { _ = try? ImportLine(sysctl: $0) }
        case UInt8(ascii: "e"): document(first, .env)
        case UInt8(ascii: "i"): document(first, .ini)
        case UInt8(ascii: "p"): document(first, .properties)
        case UInt8(ascii: "l"): listed(first, second)
        default: return
        }
    }

    private static func schema(_ text: [UInt8], _ value: [UInt8]) {
        guard let json = try? JSONValue(parsing: text),
            let schema = try? Schema(json, at: JSONPath())
        else { return }
        let issues = value.withUnsafeBytes { schema.issues(of: $0, depthLimit: 64) }
        require(issues.count <= 16, "\(issues.count) issues")
        for issue in issues { _ = "\(issue)" }
    }

    private static func expression(_ pattern: [UInt8], _ text: [UInt8]) {
        guard let pattern = String(validating: pattern, as: UTF8.self),
            let expression = try? RegularExpression(pattern)
        else { return }
        var steps = 100_000
        _ = expression.matches(String(decoding: text, as: UTF8.self), within: &steps)
    }

    private static func glob(_ pattern: [UInt8], _ key: [UInt8]) {
        key.withUnsafeBytes { key in
            pattern.withUnsafeBytes { bytes in
                let redis = Pattern(redisGlob: bytes)
                let isMeant = redis.matches(key)
                guard let pattern = try? Pattern(bytes) else { return }
                require(pattern.mayMeet(pattern), "\(pattern) does not meet itself")
                guard pattern.kind != .prefix, key.count > 0 else { return }
                require(pattern.matches(key) == isMeant, "\(pattern) is read in two ways")
            }
        }
    }

    private static func quantity(_ text: String) {
        _ = try? Quantity.duration(text)
        _ = try? Quantity.byteCount(text)
        _ = try? Quantity.count(text, in: 0...Int.max)
    }

    private static func document(_ text: [UInt8], _ format: ImportDocument.Format) {
        var document = ImportDocument(text, format)
        var line = 0
        while let entry = try? document.next() {
            require(document.line > line, "\(entry) is of line \(document.line) after \(line)")
            line = document.line
        }
    }

    /// Whatever `list` prints, `import` reads back.
    private static func listed(_ key: [UInt8], _ value: [UInt8]) {
        guard let key = try? Key(bytes: key) else { return }
        var text: [UInt8] = []
        key.bytes.withUnsafeBytes { EscapedText.append(key: $0, to: &text) }
        text += Array(" = ".utf8)
        value.withUnsafeBytes { EscapedText.append(value: $0, to: &text) }
        let line = text.withUnsafeBytes { try? ImportLine($0) }
        require(
            line?.key == key.bytes && line?.value == value,
            "\(text) is read as \(line, default: "nothing")"
        )
    }

    /// A text that can be read is the same value after it was written and read again.
    private static func json(_ text: [UInt8]) {
        guard let value = try? JSONValue(parsing: text), let written = try? value.text() else {
            return
        }
        let again = try? JSONValue(parsing: written)
        require(again == value, "\(value) is read as \(again, default: "nothing")")
    }
}
