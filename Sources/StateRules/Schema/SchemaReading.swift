import StateJSON

/// Which types decide how bytes are read: those of a schema and of what is combined with it.
struct SchemaReading {
    /// The types that a value may have.
    private(set) var types: SchemaTypes
    /// Whether `type` names them.
    private(set) var isNamed: Bool

    init(_ node: SchemaNode, _ table: SchemaTable) {
        var known: [ObjectIdentifier: SchemaReading] = [:]
        self.init(node, table, &known)
    }

    /// Each schema is looked at once, and then in `known`.
    private init(
        _ node: SchemaNode,
        _ table: SchemaTable,
        _ known: inout [ObjectIdentifier: SchemaReading]
    ) {
        if let reading = known[ObjectIdentifier(node)] {
            self = reading
            return
        }
        let keywords = node.keywords
        isNamed = keywords.types != nil
        types =
            keywords.types
            ?? keywords.choices.flatMap(\.values).map(\.schemaTypes)
            .reduce(keywords.choices.isEmpty ? .any : []) { $0.union($1) }
        if let more = keywords.more?.values {
            let together = more.all + (more.reference.map { [table.nodes[$0]] } ?? [])
            for node in together { narrow(to: SchemaReading(node, table, &known)) }
            for choices in [more.any, more.one] where !choices.isEmpty {
                let readings = choices.map { SchemaReading($0, table, &known) }
                var either = readings[0]
                for reading in readings.dropFirst() {
                    either.types.formUnion(reading.types)
                    either.isNamed = either.isNamed && reading.isNamed
                }
                narrow(to: either)
            }
        }
        known[ObjectIdentifier(node)] = self
    }

    private mutating func narrow(to other: SchemaReading) {
        types = types.intersection(of: other.types)
        isNamed = isNamed || other.isNamed
    }
}

extension SchemaTypes {
    /// The types that both allow; `number` includes `integer`.
    fileprivate func intersection(of other: SchemaTypes) -> SchemaTypes {
        func widened(_ types: SchemaTypes) -> SchemaTypes {
            types.contains(.number) ? types.union(.integer) : types
        }
        let both = widened(self).intersection(widened(other))
        return both.contains(.number) && both != .any ? both.subtracting(.integer) : both
    }
}
