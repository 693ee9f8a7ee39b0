import StateEngine
import StateJSON

// Schemas that combine others.

extension SchemaCheck {
    /// Checks a schema that has some of the rarer keywords.
    mutating func check(
        _ more: RarerKeywords.Values,
        of node: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        let token = document.tokens[index]
        let unevaluated: SchemaNode? =
            switch token.kind {
            case .object: more.unevaluatedMembers
            case .array: more.unevaluatedItems
            default: nil
            }
        guard let unevaluated else {
            checkInPlace(more, document, index, &evaluated)
            return checkParts(node, document, index, &evaluated)
        }
        // What schemas beside this one have looked at does not count.
        var own: EvaluatedParts? = EvaluatedParts(count: Int(token.end))
        take(Int(token.end))
        let before = issues.count
        checkInPlace(more, document, index, &own)
        checkParts(node, document, index, &own)
        guard !isDone, issues.count == before, let found = own else { return }
        checkUnevaluated(unevaluated, document, index, found)
        evaluated?.insertAll()
    }

    /// Checks the schemas for the same value.
    private mutating func checkInPlace(
        _ more: RarerKeywords.Values,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        if let reference = more.reference {
            checkAgain(table.nodes[reference], document, index, &evaluated)
        }
        for schema in more.all { checkAgain(schema, document, index, &evaluated) }
        if !more.any.isEmpty { checkAny(more.any, document, index, &evaluated) }
        if !more.one.isEmpty { checkOne(more.one, document, index, &evaluated) }
        if let schema = more.forbidden {
            var inner: EvaluatedParts?
            if !isDone, passes(schema, document, index, &inner) {
                add("not", "it matches the schema of 'not'")
            }
        }
        if let condition = more.condition, !isDone {
            let holds = passesApart(condition.test, document, index, &evaluated)
            guard !isOver, let schema = holds ? condition.then : condition.otherwise else { return }
            checkAgain(schema, document, index, &evaluated)
        }
    }

    /// Whether the value matches; only then it counts what the schema has looked at.
    private mutating func passesApart(
        _ schema: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) -> Bool {
        var inner = evaluated.map { EvaluatedParts(count: $0.flags.count) }
        take(inner?.flags.count ?? 0)
        guard passes(schema, document, index, &inner) else { return false }
        if let inner { evaluated?.formUnion(inner) }
        return true
    }

    private mutating func checkAny(
        _ schemas: [SchemaNode],
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        guard !isDone else { return }
        var isMet = false
        for schema in schemas where !isOver && (!isMet || evaluated != nil) {
            isMet = passesApart(schema, document, index, &evaluated) || isMet
        }
        guard !isMet, !isOver else { return }
        addNone(of: schemas, "anyOf", document, index)
    }

    private mutating func checkOne(
        _ schemas: [SchemaNode],
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        guard !isDone else { return }
        var met: [Int] = []
        for (number, schema) in schemas.enumerated() where !isOver && met.count < 2 {
            if passesApart(schema, document, index, &evaluated) { met.append(number + 1) }
        }
        guard !isOver else { return }
        if met.isEmpty {
            addNone(of: schemas, "oneOf", document, index)
        } else if met.count > 1 {
            add("oneOf", "it matches schema \(met[0]) of 'oneOf' and schema \(met[1]) too")
        }
    }

    /// How many schemas a message names.
    private static let shownSchemas = 4

    private mutating func addNone(
        of schemas: [SchemaNode],
        _ keyword: String,
        _ document: JSONDocument,
        _ index: Int
    ) {
        guard !isQuiet else { return add(keyword, "") }
        var reasons: [String] = []
        for (number, schema) in schemas.prefix(SchemaCheck.shownSchemas).enumerated() {
            guard let issue = firstIssue(schema, document, index) else { continue }
            reasons.append("(\(number + 1)) \(issue)")
        }
        if schemas.count > SchemaCheck.shownSchemas { reasons.append("…") }
        let head =
            schemas.count == 1
            ? "it does not match the schema of '\(keyword)'"
            : "it matches none of the \(schemas.count) schemas of '\(keyword)'"
        add(keyword, "\(head): \(reasons.joined(separator: "; "))")
    }
}
