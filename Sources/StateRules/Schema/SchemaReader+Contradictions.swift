import StateJSON

// What a schema says that no value meets, or that has no effect.

extension SchemaReader {
    /// Warns of what is probably a mistake in one schema.
    func findContradictions(
        _ keywords: SchemaKeywords,
        _ options: OptionReader,
        _ scope: Scope
    ) {
        let values = keywords.more?.values
        checkChoices(keywords, options, scope)
        checkBounds(keywords.bounds, options, scope)
        let counts = [
            ("minLength", keywords.minimumLength, "maxLength", keywords.maximumLength),
            ("minItems", keywords.minimumItems, "maxItems", keywords.maximumItems),
            (
                "minProperties", values?.minimumMembers, "maxProperties", values?.maximumMembers
            ),
            ("minContains", values?.contained?.least, "maxContains", values?.contained?.most),
        ]
        for (least, minimum, most, maximum) in counts {
            guard let minimum, let maximum, minimum > maximum else { continue }
            warn(
                options.path.member(least),
                "\(least) \(minimum) is above \(most) \(maximum): no value is valid",
                scope
            )
        }
        checkEffects(keywords, options, scope)
        checkMembers(keywords, options, scope)
    }

    private func checkChoices(
        _ keywords: SchemaKeywords,
        _ options: OptionReader,
        _ scope: Scope
    ) {
        for choice in keywords.choices {
            let name = choice.rule.hasPrefix("enum") ? "enum" : "const"
            let path = options.path.member(name)
            if choice.values.isEmpty { warn(path, "it is empty: no value is valid", scope) }
            guard let types = keywords.types else { continue }
            for (index, value) in choice.values.enumerated() where !value.isOf(types) {
                let place = name == "enum" ? path.element(index) : path
                let shown = value.kindDescription
                warn(
                    place,
                    "\(shown) is not of type \(types.description): it is never valid",
                    scope
                )
            }
        }
    }

    private func checkBounds(
        _ bounds: [SchemaKeywords.Bound],
        _ options: OptionReader,
        _ scope: Scope
    ) {
        for low in bounds where [.minimum, .exclusiveMinimum].contains(low.kind) {
            for high in bounds where [.maximum, .exclusiveMaximum].contains(high.kind) {
                let order = low.number.order(to: high.number)
                let isOpen = low.kind != .minimum || high.kind != .maximum
                guard order > 0 || order == 0 && isOpen else { continue }
                let relation = order > 0 ? "above" : "equal to"
                warn(
                    options.path.member(low.kind.rawValue),
                    "\(low.kind.rawValue) \(low.digits) is \(relation) "
                        + "\(high.kind.rawValue) \(high.digits): no number is valid",
                    scope
                )
            }
        }
    }

    /// The keywords that concern only one kind of value.
    private static let keywordsOfTypes: [(types: SchemaTypes, noun: String, names: [String])] = [
        (
            .numeric, "numbers",
            ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]
        ), (.string, "strings", ["minLength", "maxLength", "pattern", "format"]),
        (
            .array, "arrays",
            [
                "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains",
                "unevaluatedItems",
            ]
        ),
        (
            .object, "objects",
            [
                "properties", "additionalProperties", "required", "patternProperties",
                "propertyNames", "minProperties", "maxProperties", "dependentRequired",
                "dependentSchemas", "unevaluatedProperties",
            ]
        ),
    ]

    private func checkEffects(
        _ keywords: SchemaKeywords,
        _ options: OptionReader,
        _ scope: Scope
    ) {
        if let types = keywords.types {
            for (concerned, noun, names) in SchemaReader.keywordsOfTypes
            where types.isDisjoint(with: concerned) {
                for name in names where options.has(name) {
                    let reason = "it is for \(noun), and the type is \(types.description)"
                    warn(options.path.member(name), "no effect: \(reason)", scope)
                }
            }
        } else if options.has("pattern"), scope.isWhole, keywords.choices.isEmpty,
            !["$ref", "allOf", "anyOf", "oneOf"].contains(where: options.has)
        {
            warn(
                options.path.member("pattern"),
                "only strings are compared with it, and any other value is valid; add type: \"string\"",
                scope
            )
        }
        let pairs = [
            ("then", "if"), ("else", "if"), ("minContains", "contains"),
            ("maxContains", "contains"),
        ]
        for (name, needed) in pairs where options.has(name) && !options.has(needed) {
            warn(options.path.member(name), "no effect without \"\(needed)\"", scope)
        }
    }

    /// Warns of members that are required and forbidden.
    private func checkMembers(
        _ keywords: SchemaKeywords,
        _ options: OptionReader,
        _ scope: Scope
    ) {
        guard keywords.rest?.isNever ?? false, keywords.more?.values.patterns.isEmpty ?? true else {
            return
        }
        for (index, name) in keywords.required.enumerated()
        where keywords.properties[Array(name.utf8)] == nil {
            warn(
                options.path.member("required").element(index),
                "\"\(name)\" is required, and additionalProperties forbids it: no object is valid",
                scope
            )
        }
    }
}

extension JSONValue {
    /// Whether it has one of the types.
    fileprivate func isOf(_ types: SchemaTypes) -> Bool {
        guard case .number(let digits) = self, !types.contains(.number) else {
            return !schemaTypes.isDisjoint(with: types)
        }
        return types.contains(.integer) && ExactNumber(digits)?.isInteger ?? false
    }
}
