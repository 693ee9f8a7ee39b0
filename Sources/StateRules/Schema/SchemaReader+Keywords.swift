import StateEngine
import StateJSON

// The keywords of one schema.

extension SchemaReader {
    /// The address of the draft, the only value of `$schema`.
    private static let draft = "https://json-schema.org/draft/2020-12/schema"

    func node(
        _ value: JSONValue,
        at path: JSONPath,
        _ outer: Scope
    ) throws(OptionFault) -> SchemaNode {
        var keywords = SchemaKeywords()
        if case .bool(let isAnything) = value {
            return isAnything ? SchemaNode(keywords) : .never
        }
        guard outer.depth < SchemaReader.depthLimit else {
            throw OptionFault(path, "schemas may be nested at most \(SchemaReader.depthLimit) deep")
        }
        var options = try OptionReader(SchemaReader.withoutExtensions(value), at: path)
        var scope = outer
        scope.base = try readNames(&options, outer)
        keywords.types = try options.read("type", SchemaReader.types)
        try readChoices(&options, &keywords)
        try readBounds(&options, &keywords)
        try readText(&options, &keywords)
        try readObject(&options, &keywords, scope)
        keywords.items = try schema("items", &options, scope.inside)
        keywords.minimumItems = try options.read("minItems", SchemaReader.count)
        keywords.maximumItems = try options.read("maxItems", SchemaReader.count)
        keywords.setMore(try rarer(&options, scope))
        try readRemarks(&options, scope)
        try options.finish()
        findContradictions(keywords, options, scope)
        return SchemaNode(keywords)
    }

    /// The schema in `value` without its members `x-…`, which have no meaning here.
    private static func withoutExtensions(_ value: JSONValue) -> JSONValue {
        guard case .object(let members) = value,
            members.keys.contains(where: { $0.hasPrefix("x-") })
        else { return value }
        return .object(members.filter { !$0.key.hasPrefix("x-") })
    }

    /// Reads what names the schema; returns the address that references in it are relative to.
    private func readNames(
        _ options: inout OptionReader,
        _ scope: Scope
    ) throws(OptionFault) -> String {
        _ = try options.string("$schema") { text, path throws(OptionFault) in
            guard text == SchemaReader.draft || text == SchemaReader.draft + "#" else {
                throw OptionFault(path, "expected \"\(SchemaReader.draft)\", not \"\(text)\"")
            }
        }
        _ = try options.string("$anchor") { text, path throws(OptionFault) in
            guard SchemaReader.isAnchor(text) else {
                throw OptionFault(
                    path,
                    "expected a letter or '_', then letters, digits, '-', '_' and '.', not \"\(text)\""
                )
            }
        }
        for name in ["$dynamicRef", "$dynamicAnchor"] {
            _ = try options.read(name) { (_, path) throws(OptionFault) in
                throw OptionFault(path, "not supported; use \"$ref\" and \"$anchor\"")
            }
        }
        let base = try options.string("$id") { text, path throws(OptionFault) in
            let reference = URIReference(text)
            guard reference.fragment?.isEmpty ?? true else {
                throw OptionFault(path, "expected an address without '#', not \"\(text)\"")
            }
            return reference.resolved(against: scope.base).address
        }
        return base ?? scope.base
    }

    private static func isAnchor(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool {
            (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "_")
        }
        return text.utf8.first.map(isLetter) ?? false
            && text.utf8.allSatisfy {
                isLetter($0) || $0 &- 0x30 < 10 || $0 == UInt8(ascii: "-")
                    || $0 == UInt8(ascii: ".")
            }
    }

    /// Reads what has no effect on values.
    private func readRemarks(_ options: inout OptionReader, _ scope: Scope) throws(OptionFault) {
        for name in ["title", "description", "$comment", "contentEncoding", "contentMediaType"] {
            _ = try options.string(name)
        }
        for name in ["deprecated", "readOnly", "writeOnly"] { _ = try options.bool(name) }
        _ = try options.read("default") { value, _ in value }
        _ = try options.read("examples") { value, path throws(OptionFault) in
            try value.elements(path).count
        }
        _ = try schema("contentSchema", &options, scope.inside)
    }

    // MARK: Values

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

    private func readChoices(
        _ options: inout OptionReader,
        _ keywords: inout SchemaKeywords
    ) throws(OptionFault) {
        let list = try options.read("enum") { value, path throws(OptionFault) in
            try value.elements(path).map(\.value)
        }
        if let list {
            let shown = list.prefix(8).map(SchemaReader.text).joined(separator: ", ")
            let rest = list.count > 8 ? ", …" : ""
            keywords.choices.append(
                SchemaKeywords.Choice(
                    values: list,
                    rule: "enum \(SchemaReader.text(.array(list)))",
                    complaint: list.count == 1 ? "is not \(shown)" : "is not one of \(shown)\(rest)"
                )
            )
        }
        let constant = try options.read("const") { value, _ in value }
        if let constant {
            let shown = SchemaReader.text(constant)
            keywords.choices.append(
                SchemaKeywords.Choice(
                    values: [constant],
                    rule: "const \(shown)",
                    complaint: "is not \(shown)"
                )
            )
        }
    }

    static func text(_ value: JSONValue) -> String {
        (try? value.text()).map { String(decoding: $0, as: UTF8.self) } ?? value.kindDescription
    }

    private func readBounds(
        _ options: inout OptionReader,
        _ keywords: inout SchemaKeywords
    ) throws(OptionFault) {
        for kind in SchemaKeywords.Bound.Kind.allCases {
            let bound = try options.read(kind.rawValue) { value, path throws(OptionFault) in
                guard case .number(let digits) = value, let number = ExactNumber(digits) else {
                    throw OptionFault(path, "expected a number, not \(value.kindDescription)")
                }
                guard kind != .multipleOf || number.canDivide else {
                    throw OptionFault(
                        path,
                        "expected a number above 0 of at most 19 digits, not \(digits)"
                    )
                }
                return SchemaKeywords.Bound(kind: kind, number: number, digits: digits)
            }
            if let bound { keywords.bounds.append(bound) }
        }
    }

    private func readText(
        _ options: inout OptionReader,
        _ keywords: inout SchemaKeywords
    ) throws(OptionFault) {
        keywords.minimumLength = try options.read("minLength", SchemaReader.count)
        keywords.maximumLength = try options.read("maxLength", SchemaReader.count)
        keywords.pattern = try options.string("pattern", SchemaReader.expression)
        let format = try options.word("format", of: SchemaFormat.self)
        keywords.format = checksFormats ? format : nil
    }

    static func expression(
        _ text: String,
        _ path: JSONPath
    ) throws(OptionFault) -> RegularExpression {
        do throws(StateError) { return try RegularExpression(text) } catch {
            throw OptionFault(path, error.message)
        }
    }

    static func count(_ value: JSONValue, _ path: JSONPath) throws(OptionFault) -> Int {
        // 2.0 is the same number; 1e-400 is not 0.
        guard case .number(let digits) = value, let number = ExactNumber(digits),
            number.isInteger, !number.isNegative
        else {
            throw OptionFault(path, "expected a whole number from 0, not \(value.kindDescription)")
        }
        // Nothing in a value is counted beyond.
        return number.wholeSize.flatMap(Int.init(exactly:)) ?? .max
    }

    // MARK: Schemas in it

    private func readObject(
        _ options: inout OptionReader,
        _ keywords: inout SchemaKeywords,
        _ scope: Scope
    ) throws(OptionFault) {
        keywords.required = try options.strings("required")?.map(\.text) ?? []
        let members = try map("properties", &options) { _, value, path throws(OptionFault) in
            try node(value, at: path, scope.inside)
        }
        for (name, schema) in members { keywords.properties[Array(name.utf8)] = schema }
        keywords.rest = try schema("additionalProperties", &options, scope.inside)
    }

    func schema(
        _ name: String,
        _ options: inout OptionReader,
        _ scope: Scope
    ) throws(OptionFault) -> SchemaNode? {
        try options.read(name) { value, path throws(OptionFault) in
            try node(value, at: path, scope)
        }
    }

    /// The members of an object, in the order of their names.
    func map<Element>(
        _ name: String,
        _ options: inout OptionReader,
        _ body: (String, JSONValue, JSONPath) throws(OptionFault) -> Element
    ) throws(OptionFault) -> [(name: String, value: Element)] {
        let members = try options.read(name) { value, path throws(OptionFault) in
            guard case .object(let members) = value else {
                throw OptionFault(path, "expected an object in { }, not \(value.kindDescription)")
            }
            return try members.keys.sorted().mapAll { (name) throws(OptionFault) in
                (name: name, value: try body(name, members[name] ?? .null, path.member(name)))
            }
        }
        return members ?? []
    }
}
