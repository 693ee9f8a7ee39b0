import StateEngine
import StateWire

extension ModelKeyspace {
    /// What is otherwise in the entries that were found.
    func differences(from found: [String: Entry]) -> String {
        let keys = Set(entries.keys).union(found.keys).filter { entries[$0] != found[$0] }
        return keys.sorted().map { key in
            let found = found[key]?.description ?? "absent"
            return "'\(key)' is \(found), not \(entries[key]?.description ?? "absent")"
        }.joined(separator: "; ")
    }
}

extension ModelKeyspace.Entry: CustomStringConvertible {
    var description: String {
        "'\(value.abbreviated)' at \(revision), version \(version) since \(created), of \(owner)"
    }
}

extension String {
    /// The text, or its beginning.
    var abbreviated: String { count > 40 ? "\(prefix(40))…" : self }
}

extension Reply {
    /// The answer as a line.
    var shown: String {
        switch self {
        case .null: "null"
        case .integer(let number): String(number)
        case .error(let error): error.description
        case .array(let elements): "[\(elements.map(\.shown).joined(separator: ", "))]"
        case .bulk, .simple: "'\((textValue ?? "").abbreviated)'"
        default: String(describing: self)
        }
    }
}
