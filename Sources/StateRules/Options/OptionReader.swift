import StateEngine
import StateJSON

/// Reads the members of one object of a configuration, each once, and refuses unknown members.
///
/// A member with a fault is nil; ``finish()`` throws the faults of all.
struct OptionReader {
    let path: JSONPath
    private let members: [String: JSONValue]
    /// The same if there are few: a schema has three of the forty names that are looked for.
    private let few: [(name: String, value: JSONValue)]?
    private var known: [String] = []
    /// Those of them that there are.
    private var found: [String] = []
    private var faults: [OptionFault] = []

    /// The most faults that are collected.
    static let faultLimit = 20

    /// - Throws: ``OptionFault``, if `value` is not an object.
    init(_ value: JSONValue, at path: JSONPath) throws(OptionFault) {
        guard case .object(let members) = value else {
            throw OptionFault(path, "expected an object in { }, not \(value.kindDescription)")
        }
        self.path = path
        self.members = members
        few = members.count <= 8 ? members.map { ($0.key, $0.value) } : nil
    }

    /// Passes the member of that name to `body`, with its path; nil if it is absent or has a fault.
    ///
    /// - Throws: All faults, once there are ``faultLimit``.
    mutating func read<R>(
        _ name: String,
        _ body: (JSONValue, JSONPath) throws(OptionFault) -> R
    ) throws(OptionFault) -> R? {
        known.append(name)
        guard let value = member(name) else { return nil }
        if !found.contains(name) { found.append(name) }
        do throws(OptionFault) { return try body(value, path.member(name)) } catch {
            note(error)
            guard faults.count >= OptionReader.faultLimit else { return nil }
            // The caller records all of them.
            defer { faults = [] }
            throw OptionFault(faults) ?? error
        }
    }

    /// Records a fault of two members together, or of one whose value was read.
    mutating func note(_ fault: OptionFault) { faults += fault.all }

    /// The same, of one member.
    mutating func note(_ name: String, _ message: String) {
        note(OptionFault(path.member(name), message))
    }

    /// Whether it has a member of that name.
    func has(_ name: String) -> Bool { member(name) != nil }

    private func member(_ name: String) -> JSONValue? {
        guard let few else { return members[name] }
        return few.first { $0.name == name }?.value
    }

    /// Passes the members of that object to `body`, and refuses those that `body` does not read.
    mutating func object(
        _ name: String,
        _ body: (inout OptionReader) throws(OptionFault) -> Void
    ) throws(OptionFault) {
        _ = try read(name) { value, path throws(OptionFault) in
            var reader = try OptionReader(value, at: path)
            do throws(OptionFault) { try body(&reader) } catch { reader.note(error) }
            try reader.finish()
        }
    }

    /// Refuses members that were not read.
    ///
    /// - Throws: Their faults, each with the most similar known name, and all others.
    func finish() throws(OptionFault) {
        let unknown =
            members.count == found.count
            ? [] : members.keys.sorted().filter { !known.contains($0) }
        if let fault = OptionFault(faults + unknown.map(faultOfUnknown)) { throw fault }
    }

    private func faultOfUnknown(_ name: String) -> OptionFault {
        let help =
            Self.nearest(to: name, in: known).map { "did you mean '\($0)'?" }
            ?? "known options: \(known.sorted().joined(separator: ", "))"
        return OptionFault(path.member(name), "unknown option; \(help)")
    }

    /// The most similar name; nil if none is similar.
    private static func nearest(to name: String, in names: [String]) -> String? {
        let ranked = names.map {
            (name: $0, distance: distance(name.lowercased(), $0.lowercased()))
        }
        guard let best = ranked.min(by: { $0.distance < $1.distance }),
            best.distance <= max(1, min(name.count, best.name.count) / 2)
        else { return nil }
        return best.name
    }

    /// How many letters must be added, removed or replaced.
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

extension OptionReader {
    mutating func bool(_ name: String) throws(OptionFault) -> Bool? {
        try read(name) { value, path throws(OptionFault) in
            guard case .bool(let value) = value else {
                throw OptionFault(path, "expected true or false, not \(value.kindDescription)")
            }
            return value
        }
    }

    mutating func string(_ name: String) throws(OptionFault) -> String? {
        try string(name) { text, _ in text }
    }

    /// The result of `body` for a string.
    mutating func string<R>(
        _ name: String,
        _ body: (String, JSONPath) throws(OptionFault) -> R
    ) throws(OptionFault) -> R? {
        try read(name) { value, path throws(OptionFault) in
            try body(try value.string(path), path)
        }
    }

    /// The strings of an array, each with its path.
    mutating func strings(
        _ name: String
    ) throws(OptionFault) -> [(text: String, path: JSONPath)]? {
        try read(name) { value, path throws(OptionFault) in try value.strings(path) }
    }

    /// One of a few words.
    mutating func word<Word: CaseIterable & RawRepresentable<String>>(
        _ name: String,
        of words: Word.Type
    ) throws(OptionFault) -> Word? {
        try string(name) { text, path throws(OptionFault) in
            if let word = Word(rawValue: text) { return word }
            throw OptionFault(path, text, isNoneOf: Word.allCases.map(\.rawValue))
        }
    }

    /// A whole number in `range`.
    mutating func count(
        _ name: String,
        in range: ClosedRange<Int> = 0...Int.max
    ) throws(OptionFault) -> Int? {
        try read(name) { value, path throws(OptionFault) in
            if case .number(let digits) = value, let number = Int(digits), range.contains(number) {
                return number
            }
            let bounds = range.upperBound == .max ? "" : " to \(range.upperBound)"
            throw OptionFault(
                path,
                "expected a whole number from \(range.lowerBound)\(bounds), not "
                    + value.kindDescription
            )
        }
    }

    /// A number of bytes: a whole number, or a text such as `"8MiB"`.
    mutating func byteCount(
        _ name: String,
        in range: ClosedRange<Int64> = 0...Int64.max
    ) throws(OptionFault) -> Int64? {
        try quantity(name, "a number of bytes, such as \"8MiB\"") { text throws(StateError) in
            try Quantity.byteCount(text, in: range)
        }
    }

    /// A time: a text such as `"7d"`.
    mutating func duration(_ name: String) throws(OptionFault) -> Duration? {
        try quantity(name, "a time in quotes, such as \"7d\"") { text throws(StateError) in
            try Quantity.duration(text)
        }
    }

    private mutating func quantity<R>(
        _ name: String,
        _ expected: String,
        _ body: (String) throws(StateError) -> R
    ) throws(OptionFault) -> R? {
        try read(name) { value, path throws(OptionFault) in
            switch value {
            case .string(let text), .number(let text):
                do throws(StateError) { return try body(text) } catch {
                    throw OptionFault(path, "expected \(error.message)")
                }
            default: throw OptionFault(path, "expected \(expected), not \(value.kindDescription)")
            }
        }
    }
}

extension JSONValue {
    /// A text.
    func string(_ path: JSONPath) throws(OptionFault) -> String {
        guard case .string(let text) = self else {
            throw OptionFault(path, "expected a string in quotes, not \(kindDescription)")
        }
        return text
    }

    /// The elements of an array, with their paths.
    func elements(
        _ path: JSONPath
    ) throws(OptionFault) -> [(value: JSONValue, path: JSONPath)] {
        guard case .array(let elements) = self else {
            throw OptionFault(path, "expected an array in [ ], not \(kindDescription)")
        }
        return elements.enumerated().map { ($1, path.element($0)) }
    }

    /// The elements of an array of strings, with their paths.
    func strings(_ path: JSONPath) throws(OptionFault) -> [(text: String, path: JSONPath)] {
        try elements(path).mapAll { (element) throws(OptionFault) in
            (try element.value.string(element.path), element.path)
        }
    }
}
