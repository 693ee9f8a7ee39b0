package import StateJSON

/// Why a configuration cannot be used.
package struct OptionFault: Error, Hashable, CustomStringConvertible {
    package let path: JSONPath
    /// What was expected, and what was read.
    package let message: String
    /// The file of the rule, an index of ``Configuration/Part``.
    package internal(set) var part = 0
    /// The number of the first rule of that file, less 1.
    var rulesBefore = 0
    /// What else is wrong.
    private(set) var rest: [OptionFault] = []

    package init(_ path: JSONPath, _ message: String) {
        self.path = path
        self.message = message
    }

    /// An unknown word.
    init(_ path: JSONPath, _ word: String, isNoneOf names: [String]) {
        let words = names.map { "\"\($0)\"" }.joined(separator: ", ")
        let shown = JSONValue.string(word).kindDescription
        self.init(
            path,
            names.count == 1 ? "\(shown) is not \(words)" : "\(shown) is not one of \(words)"
        )
    }

    /// Several faults as one.
    init?(_ faults: [OptionFault]) {
        guard var first = faults.first else { return nil }
        first.rest += faults.dropFirst().flatMap(\.all)
        self = first
    }

    /// The results of both.
    ///
    /// - Throws: The faults of both.
    static func both<First, Second>(
        _ first: () throws(OptionFault) -> First,
        _ second: () throws(OptionFault) -> Second
    ) throws(OptionFault) -> (First, Second) {
        let results = (
            Result { () throws(OptionFault) in try first() },
            Result { () throws(OptionFault) in try second() }
        )
        if case (.failure(let first), .failure(let second)) = results {
            throw OptionFault([first, second]) ?? first
        }
        return (try results.0.get(), try results.1.get())
    }

    /// Each fault by itself.
    package var all: [OptionFault] {
        var first = self
        first.rest = []
        return [first] + rest
    }

    /// The same faults, of another file than the main one.
    func located(in part: Int, after count: Int) -> OptionFault {
        var fault = self
        (fault.part, fault.rulesBefore) = (part, count)
        fault.rest = rest.map { $0.located(in: part, after: count) }
        return fault
    }

    /// The path and the message of this fault alone.
    package var description: String {
        path.steps.isEmpty
            ? message : "\(path.description(countingFrom: rulesBefore + 1)): \(message)"
    }
}

extension Sequence {
    /// The results of `body` for all elements.
    ///
    /// - Throws: The faults of all of them.
    func mapAll<R>(
        _ body: (Element) throws(OptionFault) -> R
    ) throws(OptionFault) -> [R] {
        var (results, faults): ([R], [OptionFault]) = ([], [])
        for element in self {
            do throws(OptionFault) { results.append(try body(element)) } catch {
                faults.append(error)
                if faults.count >= OptionReader.faultLimit { break }
            }
        }
        if let fault = OptionFault(faults) { throw fault }
        return results
    }
}

extension JSONValue {
    /// Its kind, for the message of a fault.
    package var kindDescription: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .number(let digits): digits.utf8.count > 64 ? "\(digits.prefix(64))…" : digits
        case .string(let text): "\"\(text.count > 64 ? "\(text.prefix(64))…" : text)\""
        case .array: "an array"
        case .object: "an object"
        }
    }
}
