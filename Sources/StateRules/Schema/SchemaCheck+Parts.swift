import StateEngine
import StateJSON

// The elements of arrays and the members of objects.

extension SchemaCheck {
    /// The words for a part that a schema `false` refuses.
    private enum Part: String {
        case element, member

        var complaint: String { "this \(rawValue) is not allowed" }
    }

    /// Checks a part, named `place`, with the schema of `keyword`; `isAgain` if another keyword may
    /// check it too.
    private mutating func checkPart(
        _ place: String,
        _ part: Part,
        _ keyword: String,
        _ schema: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        isAgain: Bool = false
    ) {
        guard !isDone else { return }
        path.append(place)
        var evaluated: EvaluatedParts?
        if schema.isNever {
            add("\(keyword) false", part.complaint)
        } else if isAgain {
            checkAgain(schema, document, index, &evaluated)
        } else {
            check(schema, document, index, &evaluated)
        }
        path.removeLast()
    }

    // MARK: Arrays

    mutating func checkArray(
        _ node: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        let count = Int(document.tokens[index].end)
        if let least = node.keywords.minimumItems, count < least {
            add("minItems \(least)", "it has \(count) elements, fewer than \(least)")
        }
        if let most = node.keywords.maximumItems, count > most {
            add("maxItems \(most)", "it has \(count) elements, more than \(most)")
        }
        if let more = node.keywords.more { checkArray(more.values, document, index, &evaluated) }
        let first = node.keywords.more?.values.first ?? []
        guard node.keywords.items != nil || !first.isEmpty else { return }
        var element = index + 1
        for number in 0..<count where !isDone {
            let isFirst = number < first.count
            guard let schema = isFirst ? first[number] : node.keywords.items else { return }
            checkPart(
                "\(number)",
                .element,
                isFirst ? "prefixItems" : "items",
                schema,
                document,
                element
            )
            evaluated?.insert(number)
            element = Int(document.tokens[element].next)
        }
    }

    private mutating func checkArray(
        _ more: RarerKeywords.Values,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        if more.areItemsUnique, let (first, second) = equalElements(document, index) {
            add("uniqueItems", "elements \(first) and \(second) are equal")
        }
        if let contained = more.contained { check(contained, document, index, &evaluated) }
    }

    private mutating func check(
        _ contained: RarerKeywords.Contained,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        var (found, element) = (0, index + 1)
        for number in 0..<Int(document.tokens[index].end) where !isOver {
            var inner: EvaluatedParts?
            if passes(contained.schema, document, element, &inner) {
                found += 1
                evaluated?.insert(number)
            }
            element = Int(document.tokens[element].next)
        }
        if found < contained.least {
            let text = "\(found) elements match 'contains', fewer than \(contained.least)"
            add("minContains \(contained.least)", text)
        }
        if let most = contained.most, found > most {
            add("maxContains \(most)", "\(found) elements match 'contains', more than \(most)")
        }
    }

    /// The first element that equals one before it, and that one.
    private mutating func equalElements(_ document: JSONDocument, _ index: Int) -> (Int, Int)? {
        let count = Int(document.tokens[index].end)
        guard count > 1 else { return nil }
        var places: [[UInt8]: Int] = [:]
        var element = index + 1
        for number in 0..<count {
            // Order matters: an element may be nearly the whole value, and arrays around it have
            // looked at it already.
            take(Int(document.tokens[element].next) - element)
            guard !isOver else { return nil }
            take(document.byteCount(of: element) / 8)
            guard !isOver else { return nil }
            var form: [UInt8] = []
            document.appendCanonical(element, to: &form)
            if let known = places.updateValue(number, forKey: form) { return (known, number) }
            element = Int(document.tokens[element].next)
        }
        return nil
    }

    // MARK: Objects

    mutating func checkObject(
        _ node: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        for name in node.keywords.required { require(name, "required", document, index) }
        if let more = node.keywords.more { checkObject(more.values, document, index, &evaluated) }
        var members: [(name: Int, value: Int)] = []
        document.forEachMember(of: index) {
            members.append(($0, $1))
            return true
        }
        // Check each one, also two with the same name: readers differ in which of them they use.
        for (number, member) in members.enumerated() where !isDone {
            let name = document.text(of: document.tokens[member.name])
            var isKnown = false
            if let schema = node.keywords.properties[Array(name.utf8)] {
                checkPart(name, .member, "properties", schema, document, member.value)
                isKnown = true
            }
            if let more = node.keywords.more {
                isKnown = check(more.values, name, document, member) || isKnown
            }
            if !isKnown, let rest = node.keywords.rest {
                checkPart(name, .member, "additionalProperties", rest, document, member.value)
                isKnown = true
            }
            if isKnown { evaluated?.insert(number) }
        }
    }

    private mutating func require(
        _ name: String,
        _ rule: String,
        _ document: JSONDocument,
        _ index: Int
    ) {
        guard document.member(name, of: index) == nil else { return }
        path.append(name)
        add(rule, "a value is required")
        path.removeLast()
    }

    private mutating func checkObject(
        _ more: RarerKeywords.Values,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: inout EvaluatedParts?
    ) {
        let count = Int(document.tokens[index].end)
        if let least = more.minimumMembers, count < least {
            add("minProperties \(least)", "it has \(count) members, fewer than \(least)")
        }
        if let most = more.maximumMembers, count > most {
            add("maxProperties \(most)", "it has \(count) members, more than \(most)")
        }
        for (name, required) in more.dependentNames
        where document.member(name, of: index) != nil {
            for other in required { require(other, "dependentRequired", document, index) }
        }
        for (name, schema) in more.dependentSchemas
        where document.member(name, of: index) != nil {
            checkAgain(schema, document, index, &evaluated)
        }
    }

    /// Checks what the name of a member decides.
    ///
    /// - Returns: Whether a pattern matches the name.
    private mutating func check(
        _ more: RarerKeywords.Values,
        _ name: String,
        _ document: JSONDocument,
        _ member: (name: Int, value: Int)
    ) -> Bool {
        if let schema = more.names {
            checkPart(name, .member, "propertyNames", schema, document, member.name, isAgain: true)
        }
        var isKnown = false
        for known in more.patterns where !isOver && matches(known.pattern, name) {
            isKnown = true
            checkPart(
                name,
                .member,
                "patternProperties",
                known.schema,
                document,
                member.value,
                isAgain: true
            )
        }
        return isKnown
    }

    // MARK: What is left

    /// Checks the parts of a value that no other keyword has looked at.
    mutating func checkUnevaluated(
        _ schema: SchemaNode,
        _ document: JSONDocument,
        _ index: Int,
        _ evaluated: EvaluatedParts
    ) {
        var place = index + 1
        let isObject = document.tokens[index].kind == .object
        for (number, isKnown) in evaluated.flags.enumerated() where !isDone {
            let value = isObject ? place + 1 : place
            if !isKnown {
                checkPart(
                    isObject ? document.text(of: document.tokens[place]) : "\(number)",
                    isObject ? .member : .element,
                    isObject ? "unevaluatedProperties" : "unevaluatedItems",
                    schema,
                    document,
                    value,
                    isAgain: true
                )
            }
            place = Int(document.tokens[value].next)
        }
    }
}
