import StateEngine
package import StateJSON

/// Reads the members of one object of a configuration, each once, and refuses what is left.
package struct OptionReader {
    package let path: JSONPath
    private let members: [String: JSONValue]
    private var known: [String] = []

    /// - Throws: ``OptionFault``, where `value` is no object.
    package init(_ value: JSONValue, at path: JSONPath) throws(OptionFault) {
        guard case .object(let members) = value else {
            throw OptionFault(path, "an object in { } is wanted, not \(value.kindDescription)")
        }
        self.path = path
        self.members = members
    }

    /// Hands the member of that name to `body`, with its place; nil where it is absent.
    package mutating func read<R>(
        _ name: String,
        _ body: (JSONValue, JSONPath) throws(OptionFault) -> R
    ) throws(OptionFault) -> R? {
        known.append(name)
        guard let value = members[name] else { return nil }
        return try body(value, path.member(name))
    }

    /// Refuses members that nothing has asked for.
    ///
    /// - Throws: ``OptionFault``, with the nearest name that is known.
    package func finish() throws(OptionFault) {
        guard let unknown = members.keys.sorted().first(where: { !known.contains($0) }) else {
            return
        }
        let nearest = Self.nearest(to: unknown, in: known)
        let help =
            nearest.map { "did you mean '\($0)'?" }
            ?? "known are \(known.sorted().joined(separator: ", "))"
        throw OptionFault(path.member(unknown), "there is no such option; \(help)")
    }

    /// The name with the fewest changes between them; nil where none is near.
    private static func nearest(to name: String, in names: [String]) -> String? {
        let ranked = names.map {
            (name: $0, distance: distance(name.lowercased(), $0.lowercased()))
        }
        guard let best = ranked.min(by: { $0.distance < $1.distance }),
            best.distance <= max(1, min(name.count, best.name.count) / 2)
        else { return nil }
        return best.name
    }

    /// How many letters are to be added, taken away or replaced.
    private static func distance(_ from: String, _ to: String) -> Int {
        let (from, to) = (Array(from.unicodeScalars), Array(to.unicodeScalars))
        guard from.count <= 64 else { return .max }
        var row = Array(0...to.count)
        for (index, letter) in from.enumerated() {
            var corner = row[0]
            row[0] = index + 1
            for (column, other) in to.enumerated() {
                let replaced = corner + (letter == other ? 0 : 1)
                corner = row[column + 1]
                row[column + 1] = min(replaced, corner + 1, row[column] + 1)
            }
        }
        return row[to.count]
    }
}

// MARK: Values

extension JSONValue {
    /// `true` or `false`.
    package func option(_ path: JSONPath, as type: Bool.Type) throws(OptionFault) -> Bool {
        guard case .bool(let value) = self else {
            throw OptionFault(path, "true or false is wanted, not \(kindDescription)")
        }
        return value
    }

    /// A text.
    package func option(_ path: JSONPath, as type: String.Type) throws(OptionFault) -> String {
        guard case .string(let text) = self else {
            throw OptionFault(path, "a string is wanted, not \(kindDescription)")
        }
        return text
    }

    /// The elements of an array, with their places.
    package func elements(
        _ path: JSONPath
    ) throws(OptionFault) -> [(value: JSONValue, path: JSONPath)] {
        guard case .array(let elements) = self else {
            throw OptionFault(path, "an array in [ ] is wanted, not \(kindDescription)")
        }
        return elements.enumerated().map { ($1, path.element($0)) }
    }

    /// A whole number in `range`.
    package func count(_ path: JSONPath, in range: ClosedRange<Int>) throws(OptionFault) -> Int {
        let wanted = "a whole number from \(range.lowerBound) to \(range.upperBound) is wanted"
        guard case .number(let digits) = self, let number = Int(digits), range.contains(number)
        else { throw OptionFault(path, "\(wanted), not \(kindDescription)") }
        return number
    }

    /// A number of bytes: a whole number, or a text such as `"8MiB"`.
    package func byteCount(
        _ path: JSONPath,
        in range: ClosedRange<Int64>
    ) throws(OptionFault) -> Int64 {
        try quantity(path, "a number of bytes, such as \"8MiB\"") { text throws(StateError) in
            try Quantity.byteCount(text, in: range)
        }
    }

    /// A time: a text such as `"7d"`.
    package func duration(_ path: JSONPath) throws(OptionFault) -> Duration {
        try quantity(path, "a time in quotes, such as \"7d\"") { text throws(StateError) in
            try Quantity.duration(text)
        }
    }

    private func quantity<R>(
        _ path: JSONPath,
        _ wanted: String,
        _ body: (String) throws(StateError) -> R
    ) throws(OptionFault) -> R {
        let text: String
        switch self {
        case .string(let written): text = written
        case .number(let digits): text = digits
        default: throw OptionFault(path, "\(wanted) is wanted, not \(kindDescription)")
        }
        do throws(StateError) { return try body(text) } catch {
            throw OptionFault(path, "wanted are \(error.message)")
        }
    }
}
