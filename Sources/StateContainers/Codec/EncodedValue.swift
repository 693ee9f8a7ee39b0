import StateEngine
import StateJSON

/// The encoded form of a value.
///
/// Arrays and objects are shared with the containers that fill them.
enum EncodedValue {
    case null
    case bool(Bool)
    case integer(Int64)
    /// Any other number, as digits.
    case number(String)
    case string(String)
    case array(EncodedArray)
    case object(EncodedObject)
    /// The future result of another encoder: a `superEncoder()`.
    case deferred(ValueEncoder)
}

final class EncodedArray {
    var elements: [EncodedValue] = []
}

/// The members in the order of encoding; of two with the same name, the later counts.
final class EncodedObject {
    typealias Member = (name: String, value: EncodedValue)

    var members: [Member] = []

    /// The members in byte order of their names, each name once.
    var sorted: [Member] {
        // Most objects have few members. The sort is stable, so the later of two equal names wins.
        var sorted = members.sorted { JSONWriter.order($0.name, $1.name) < 0 }
        guard sorted.count > 1 else { return sorted }
        var last = 0
        for index in 1..<sorted.count {
            if JSONWriter.order(sorted[index].name, sorted[last].name) == 0 {
                sorted[last] = sorted[index]
            } else {
                last += 1
                if last != index { sorted[last] = sorted[index] }
            }
        }
        sorted.removeLast(sorted.count - last - 1)
        return sorted
    }

    /// The last member with that name.
    func member(_ name: String) -> EncodedValue? { members.last { $0.name == name }?.value }
}

extension EncodedValue {
    /// The value with deferred parts filled in.
    var settled: EncodedValue {
        guard case .deferred(let encoder) = self else { return self }
        return (encoder.value ?? .object(EncodedObject())).settled
    }
}

extension JSONWriter {
    /// Appends a value; object members are sorted by name.
    mutating func append(_ value: EncodedValue) {
        switch value {
        case .null: append(word: "null")
        case .bool(let value): append(word: value ? "true" : "false")
        case .integer(let value): append(word: String(value))
        case .number(let digits): append(word: digits)
        case .string(let text): append(string: text)
        case .deferred: append(value.settled)
        case .array(let array): append(array.elements, in: "[", "]") { $0.append($1) }
        case .object(let object):
            append(object.sorted, in: "{", "}") {
                $0.append(name: $1.name)
                $0.append($1.value)
            }
        }
    }
}
