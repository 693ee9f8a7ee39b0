import StateEngine
import StateJSON

// The keywords that few schemas have.

extension SchemaReader {
    func rarer(
        _ options: inout OptionReader,
        _ scope: Scope
    ) throws(OptionFault) -> RarerKeywords.Values {
        var values = RarerKeywords.Values()
        try readDefinitions(&options, scope)
        values.reference = try options.string("$ref") { text, path throws(OptionFault) in
            try target(of: text, at: path, scope)
        }
        values.all = try list("allOf", &options, scope.inPlace)
        values.any = try list("anyOf", &options, scope.inPlace)
        values.one = try list("oneOf", &options, scope.inPlace)
        values.forbidden = try schema("not", &options, scope.inPlace)
        let test = try schema("if", &options, scope.inPlace)
        let then = try schema("then", &options, scope.inPlace)
        let otherwise = try schema("else", &options, scope.inPlace)
        values.condition = test.map {
            RarerKeywords.Condition(test: $0, then: then, otherwise: otherwise)
        }
        try readElements(&values, &options, scope)
        try readMembers(&values, &options, scope)
        return values
    }

    /// Reads the schemas that only references use.
    private func readDefinitions(
        _ options: inout OptionReader,
        _ scope: Scope
    ) throws(OptionFault) {
        for name in ["$defs", "definitions"] {
            _ = try map(name, &options) { (_, _, path) in target(path, scope) }
        }
    }

    /// A list of at least one schema; empty if there is none.
    private func list(
        _ name: String,
        _ options: inout OptionReader,
        _ scope: Scope
    ) throws(OptionFault) -> [SchemaNode] {
        let schemas = try options.read(name) { value, path throws(OptionFault) in
            let elements = try value.elements(path)
            guard !elements.isEmpty else { throw OptionFault(path, "expected at least one schema") }
            return try elements.mapAll { (element) throws(OptionFault) in
                try node(element.value, at: element.path, scope)
            }
        }
        return schemas ?? []
    }

    private func readElements(
        _ values: inout RarerKeywords.Values,
        _ options: inout OptionReader,
        _ scope: Scope
    ) throws(OptionFault) {
        values.first = try list("prefixItems", &options, scope.inside)
        let contained = try schema("contains", &options, scope.inside)
        let least = try options.read("minContains", SchemaReader.count)
        let most = try options.read("maxContains", SchemaReader.count)
        values.contained = contained.map {
            RarerKeywords.Contained(schema: $0, least: least ?? 1, most: most)
        }
        values.areItemsUnique = try options.bool("uniqueItems") ?? false
        values.unevaluatedItems = try schema("unevaluatedItems", &options, scope.inside)
    }

    private func readMembers(
        _ values: inout RarerKeywords.Values,
        _ options: inout OptionReader,
        _ scope: Scope
    ) throws(OptionFault) {
        values.patterns = try map("patternProperties", &options) {
            name,
            value,
            path throws(OptionFault) in
            let (pattern, schema) = try OptionFault.both(
                { () throws(OptionFault) in try SchemaReader.expression(name, path) },
                { () throws(OptionFault) in try node(value, at: path, scope.inside) }
            )
            return RarerKeywords.PatternMember(pattern: pattern, schema: schema)
        }
        .map(\.value)
        // A name is a string, so that a pattern without a type is complete.
        values.names = try schema("propertyNames", &options, scope.inPlace)
        values.minimumMembers = try options.read("minProperties", SchemaReader.count)
        values.maximumMembers = try options.read("maxProperties", SchemaReader.count)
        values.dependentNames = try map("dependentRequired", &options) {
            _,
            value,
            path throws(OptionFault) in
            try value.strings(path).map(\.text)
        }
        .map { (name: $0, required: $1) }
        values.dependentSchemas = try map("dependentSchemas", &options) {
            _,
            value,
            path throws(OptionFault) in
            try node(value, at: path, scope.inPlace)
        }
        .map { (name: $0, schema: $1) }
        try readDependencies(&values, &options, scope)
        values.unevaluatedMembers = try schema("unevaluatedProperties", &options, scope.inside)
    }

    /// The keyword of earlier drafts for both kinds of dependencies.
    private func readDependencies(
        _ values: inout RarerKeywords.Values,
        _ options: inout OptionReader,
        _ scope: Scope
    ) throws(OptionFault) {
        let members = try map("dependencies", &options) {
            _,
            value,
            path throws(OptionFault) -> (names: [String], schema: SchemaNode?) in
            if case .array = value { return (try value.strings(path).map(\.text), nil) }
            return ([], try node(value, at: path, scope.inPlace))
        }
        for (name, member) in members {
            if let schema = member.schema {
                values.dependentSchemas.append((name, schema))
            } else {
                values.dependentNames.append((name, member.names))
            }
        }
    }
}
