import StateEngine
package import StateJSON

extension Schema {
    /// How deep schemas may be nested.
    private static let depthLimit = 64

    /// Reads a schema of a configuration.
    ///
    /// - Throws: ``OptionFault``, for an unknown keyword, or a keyword with a wrong value.
    package init(_ value: JSONValue, at path: JSONPath) throws(OptionFault) {
        try self.init(value, at: path, depth: 0)
    }

    private init(
        _ value: JSONValue,
        at path: JSONPath,
        depth: Int
    ) throws(OptionFault) {
        self.init()
        if case .bool(let isAnything) = value {
            isNever = !isAnything
            return
        }
        guard depth < Schema.depthLimit else {
            throw OptionFault(path, "schemas may be nested at most \(Schema.depthLimit) deep")
        }
        var reader = try OptionReader(value, at: path)
        types = try reader.read("type", Schema.types)
        try readChoices(&reader)
        try readBounds(&reader)
        try readText(&reader)
        try readObject(&reader, depth)
        try readArray(&reader, depth)
        // Texts for readers.
        for name in ["title", "description", "$comment"] { _ = try reader.string(name) }
        try reader.finish()
    }

    private static func types(
        _ value: JSONValue,
        _ path: JSONPath
    ) throws(OptionFault) -> SchemaTypes {
        if case .string(let name) = value { return try type(name, path) }
        let types = try value.strings(path).map(type)
        guard !types.isEmpty else { throw OptionFault(path, "expected at least one type") }
        return SchemaTypes(types)
    }

    private static func type(_ name: String, _ path: JSONPath) throws(OptionFault) -> SchemaTypes {
        if let type = SchemaTypes(name: name) { return type }
        throw OptionFault(path, name, isNoneOf: SchemaTypes.names.map(\.name))
    }

    private mutating func readChoices(_ reader: inout OptionReader) throws(OptionFault) {
        let list = try reader.read("enum") { value, path throws(OptionFault) in
            try value.elements(path).map(\.value)
        }
        if let list {
            choices.append(Choice(values: list, rule: "enum \(Schema.text(.array(list)))"))
        }
        let constant = try reader.read("const") { value, _ in value }
        if let constant {
            choices.append(Choice(values: [constant], rule: "const \(Schema.text(constant))"))
        }
    }

    private static func text(_ value: JSONValue) -> String {
        (try? value.text()).map { String(decoding: $0, as: UTF8.self) } ?? value.kindDescription
    }

    private mutating func readBounds(_ reader: inout OptionReader) throws(OptionFault) {
        for kind in Bound.Kind.allCases {
            let bound = try reader.read(kind.rawValue) { value, path throws(OptionFault) in
                guard case .number(let digits) = value, let number = ExactNumber(digits) else {
                    throw OptionFault(path, "expected a number, not \(value.kindDescription)")
                }
                guard kind != .multipleOf || number.canDivide else {
                    throw OptionFault(
                        path,
                        "expected a number above 0 of at most 19 digits, not \(digits)"
                    )
                }
                return Bound(kind: kind, number: number, digits: digits)
            }
            if let bound { bounds.append(bound) }
        }
    }

    private mutating func readText(_ reader: inout OptionReader) throws(OptionFault) {
        minimumLength = try reader.read("minLength", Schema.count)
        maximumLength = try reader.read("maxLength", Schema.count)
        pattern = try reader.string("pattern") { text, path throws(OptionFault) in
            do throws(StateError) { return try RegularExpression(text) } catch {
                throw OptionFault(path, error.message)
            }
        }
        format = try reader.word("format", of: SchemaFormat.self)
    }

    private static func count(_ value: JSONValue, _ path: JSONPath) throws(OptionFault) -> Int {
        // 2.0 is the same number.
        guard case .number(let digits) = value, let number = Double(digits), number >= 0,
            let count = Int(exactly: number)
        else {
            throw OptionFault(path, "expected a whole number from 0, not \(value.kindDescription)")
        }
        return count
    }

    private mutating func readObject(_ reader: inout OptionReader, _ depth: Int) throws(OptionFault)
    {
        required = try reader.strings("required")?.map(\.text) ?? []
        let members = try reader.read("properties") { value, path throws(OptionFault) in
            guard case .object(let members) = value else {
                throw OptionFault(path, "expected an object in { }, not \(value.kindDescription)")
            }
            var schemas: [[UInt8]: Schema] = [:]
            for (name, value) in members {
                schemas[Array(name.utf8)] = try Schema(
                    value,
                    at: path.member(name),
                    depth: depth + 1
                )
            }
            return schemas
        }
        properties = members ?? [:]
        rest = try Schema.parts("additionalProperties", &reader, depth)
    }

    private mutating func readArray(_ reader: inout OptionReader, _ depth: Int) throws(OptionFault)
    {
        items = try Schema.parts("items", &reader, depth)
        minimumItems = try reader.read("minItems", Schema.count)
        maximumItems = try reader.read("maxItems", Schema.count)
    }

    private static func parts(
        _ name: String,
        _ reader: inout OptionReader,
        _ depth: Int
    ) throws(OptionFault) -> Parts {
        try reader.read(name) { value, path throws(OptionFault) in
            .matching(try Schema(value, at: path, depth: depth + 1))
        } ?? .anything
    }
}
