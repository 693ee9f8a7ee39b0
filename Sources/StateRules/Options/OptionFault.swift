package import StateJSON

/// Why a configuration cannot be used.
package struct OptionFault: Error, Hashable, CustomStringConvertible {
    package let path: JSONPath
    /// What was expected, and what was read.
    package let message: String

    package init(_ path: JSONPath, _ message: String) {
        self.path = path
        self.message = message
    }

    /// An unknown word.
    init(_ path: JSONPath, _ word: String, isNoneOf names: [String]) {
        self.init(path, "expected one of \(names.joined(separator: ", ")), not \"\(word)\"")
    }

    package var description: String {
        path.steps.isEmpty ? message : "\(path): \(message)"
    }
}

extension JSONValue {
    /// Its kind, for the message of a fault.
    package var kindDescription: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .number(let digits): digits
        case .string(let text): "\"\(text.count > 64 ? "\(text.prefix(64))…" : text)\""
        case .array: "an array"
        case .object: "an object"
        }
    }
}
