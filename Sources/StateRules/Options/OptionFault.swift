package import StateJSON

/// Why a configuration cannot be used.
package struct OptionFault: Error, Hashable, CustomStringConvertible {
    package let path: JSONPath
    /// What was read and what may stand there.
    package let message: String

    package init(_ path: JSONPath, _ message: String) {
        self.path = path
        self.message = message
    }

    /// Of a word that is none of those that may stand there.
    init(_ path: JSONPath, _ word: String, isNoneOf names: [String]) {
        self.init(path, "one of \(names.joined(separator: ", ")) is wanted, not \"\(word)\"")
    }

    package var description: String {
        path.steps.isEmpty ? message : "\(path): \(message)"
    }
}

extension JSONValue {
    /// What it is, for the message of a fault.
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
