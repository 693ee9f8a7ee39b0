import StateJSON

/// Types of JSON Schema.
///
/// A number without a fraction is also an integer, however it is written.
struct SchemaTypes: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    static let null = SchemaTypes(rawValue: 1)
    static let boolean = SchemaTypes(rawValue: 2)
    static let integer = SchemaTypes(rawValue: 4)
    static let number = SchemaTypes(rawValue: 8)
    static let string = SchemaTypes(rawValue: 16)
    static let array = SchemaTypes(rawValue: 32)
    static let object = SchemaTypes(rawValue: 64)
    static let any = SchemaTypes(rawValue: 127)

    static let numeric: SchemaTypes = [.integer, .number]

    static let names: [(name: String, type: SchemaTypes)] = [
        ("null", .null), ("boolean", .boolean), ("integer", .integer), ("number", .number),
        ("string", .string), ("array", .array), ("object", .object),
    ]

    init(rawValue: UInt8) { self.rawValue = rawValue }

    init?(name: String) {
        guard let known = SchemaTypes.names.first(where: { $0.name == name }) else { return nil }
        self = known.type
    }

    /// The types of a value.
    init(_ kind: JSONToken.Kind) {
        self =
            switch kind {
            case .null: .null
            case .false, .true: .boolean
            case .number: .numeric
            case .string, .escapedString: .string
            case .array: .array
            case .object: .object
            }
    }

    /// The names, for a sentence.
    var description: String {
        SchemaTypes.names.filter { contains($0.type) }.map(\.name).joined(separator: " or ")
    }
}
