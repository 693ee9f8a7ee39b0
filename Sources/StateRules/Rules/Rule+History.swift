import StateEngine
import StateJSON

extension Rule {
    /// Reads `history`: 0, or an object with `changes`, `age` or both.
    static func history(_ reader: inout OptionReader) throws(OptionFault) -> KeyRetention? {
        try reader.read("history") { value, path throws(OptionFault) in
            switch value {
            case .number("0"): return KeyRetention(changeCount: 0)
            case .object: return try retention(value, path)
            default:
                throw OptionFault(
                    path,
                    "expected 0, or an object such as { changes: 10, age: \"1d\" }, not "
                        + value.kindDescription
                )
            }
        }
    }

    private static func retention(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) -> KeyRetention {
        var reader = try OptionReader(value, at: path)
        let retention = KeyRetention(
            changeCount: try reader.count("changes"),
            age: try reader.duration("age")
        )
        try reader.finish()
        guard retention != KeyRetention() else {
            throw OptionFault(path, "expected 'changes', 'age' or both")
        }
        return retention
    }
}
