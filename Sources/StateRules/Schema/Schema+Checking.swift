package import StateEngine
import StateJSON

extension Schema {
    /// The most issues reported for one value.
    private static let issueLimit = 16

    /// The issues of a stored value; none if it is valid.
    ///
    /// The bytes are read as a number, `true`, `false`, `null`, an object or an array if they are
    /// JSON of a type that the schema allows. Otherwise they are a string: under `{ type: "string"
    /// }` the bytes `5` are a string.
    ///
    /// - Parameters:
    ///   - bytes: The value.
    ///   - depthLimit: How deep its arrays and objects may be nested.
    /// - Returns: At most 16 issues, each with the path inside the value.
    /// - Complexity: O(*n*) in the bytes; with `pattern`, times the size of the pattern, up to a
    ///   limit. A number allocates nothing.
    package func issues(of bytes: Bytes, depthLimit: Int) -> [ValidationIssue] {
        if isNumeric { return numericIssues(bytes) }
        var check = Check()
        if let document = document(bytes, depthLimit, &check) {
            check.check(self, document, 0)
        } else if check.issues.isEmpty {
            check.checkText(self, bytes)
        }
        return check.issues
    }

    /// The types that decide how bytes are read.
    private var possibleTypes: SchemaTypes {
        types
            ?? choices.flatMap(\.values).map(\.schemaTypes)
            .reduce(choices.isEmpty ? .any : []) { $0.union($1) }
    }

    /// The JSON document of the bytes, unless they are read as a string.
    private func document(_ bytes: Bytes, _ depthLimit: Int, _ check: inout Check) -> JSONDocument?
    {
        let possible = possibleTypes
        let first = bytes.first { !JSONScanner.isSpace($0) }
        let isAggregate = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        guard possible != .string, let first, first != UInt8(ascii: "\"") else { return nil }
        do throws(JSONFault) {
            let document = try JSONDocument(Array(bytes), depthLimit: depthLimit)
            return document.isOf(possible, 0) || !possible.contains(.string) ? document : nil
        } catch {
            let mayBeText = possible.contains(.string) && !(isAggregate && types == nil)
            guard isAggregate, !mayBeText else { return nil }
            if error.isTooDeep {
                check.add("depth \(depthLimit)", error.description)
                return nil
            }
            check.add(
                "type \(possible.description)",
                "the value is not valid JSON: \(error.description)"
            )
            return nil
        }
    }

    // MARK: Numbers

    /// Whether it allows only numbers, and has only bounds for them.
    private var isNumeric: Bool {
        guard let types, !types.isEmpty, types.isSubset(of: .numeric) else { return false }
        return choices.isEmpty && !isNever
    }

    /// The integers of at most 15 digits that ``bounds`` allow.
    ///
    /// Found by binary search, because the bounds are exact numbers of any length.
    package var plainIntegers: ClosedRange<Int64>? {
        guard isNumeric, !bounds.contains(where: { $0.kind == .multipleOf }) else { return nil }
        let largest: Int64 = 999_999_999_999_999
        func isAdmitted(_ number: Int64, by kinds: [Schema.Bound.Kind]) -> Bool {
            let exact = Array(String(number).utf8).withUnsafeBytes { ExactNumber($0) }
            guard let exact else { return false }
            return bounds.allSatisfy { !kinds.contains($0.kind) || $0.admits(exact) }
        }
        /// The end of the range on one side; nil if the range is empty.
        func end(_ side: Int64, _ kinds: [Schema.Bound.Kind]) -> Int64? {
            var (inside, outside) = (-side * largest, side * largest)
            if isAdmitted(outside, by: kinds) { return outside }
            guard isAdmitted(inside, by: kinds) else { return nil }
            while abs(outside - inside) > 1 {
                let middle = inside + (outside - inside) / 2
                if isAdmitted(middle, by: kinds) { inside = middle } else { outside = middle }
            }
            return inside
        }
        guard let first = end(-1, [.minimum, .exclusiveMinimum]),
            let last = end(1, [.maximum, .exclusiveMaximum]), first <= last
        else { return nil }
        return first...last
    }

    private func numericIssues(_ bytes: Bytes) -> [ValidationIssue] {
        var check = Check()
        guard let number = ExactNumber(bytes.trimmed) else {
            check.addType(types ?? .number, "\(StateError.quoted(bytes)) is")
            return check.issues
        }
        if types == .integer, !number.isInteger {
            check.addType(.integer, "\(bytes.trimmed.text) is")
        } else if bounds.contains(where: { !$0.admits(number) }) {
            check.check(bounds, number, bytes.trimmed.text)
        }
        return check.issues
    }
}

extension Schema.Bound {
    func admits(_ value: ExactNumber) -> Bool {
        switch kind {
        case .minimum: value.order(to: number) >= 0
        case .maximum: value.order(to: number) <= 0
        case .exclusiveMinimum: value.order(to: number) > 0
        case .exclusiveMaximum: value.order(to: number) < 0
        case .multipleOf: value.isMultiple(of: number)
        }
    }

    fileprivate func message(_ text: String) -> String {
        switch kind {
        case .minimum: "\(text) is below \(digits)"
        case .maximum: "\(text) is above \(digits)"
        case .exclusiveMinimum: "\(text) is not above \(digits)"
        case .exclusiveMaximum: "\(text) is not below \(digits)"
        case .multipleOf: "\(text) is not a multiple of \(digits)"
        }
    }
}

extension Bytes {
    /// Without white space at both ends.
    fileprivate var trimmed: Bytes {
        var (start, end) = (0, count)
        while start < end, JSONScanner.isSpace(self[start]) { start += 1 }
        while end > start, JSONScanner.isSpace(self[end - 1]) { end -= 1 }
        return slice(start, end)
    }
}

extension Schema {
    /// Collects the issues.
    private struct Check {
        private(set) var issues: [ValidationIssue] = []
        private var path: [String] = []
        /// The steps that all patterns together may still take.
        private var steps = RegularExpression.stepLimit

        private var isFull: Bool { issues.count >= Schema.issueLimit }

        mutating func add(_ rule: String, _ message: String) {
            guard !isFull else { return }
            issues.append(
                ValidationIssue(path: path.joined(separator: "/"), rule: rule, message: message)
            )
        }

        private mutating func add(_ issue: ValidationIssue?) {
            if let issue { add(issue.rule, issue.message) }
        }

        mutating func addType(_ types: SchemaTypes, _ what: String) {
            add("type \(types.description)", "\(what) not of type \(types.description)")
        }

        /// Checks a part, named `place`.
        private mutating func checkPart(
            _ place: String,
            _ parts: Parts,
            _ document: JSONDocument,
            _ index: Int
        ) {
            guard case .matching(let schema) = parts, !isFull else { return }
            path.append(place)
            schema.isNever
                ? add("additionalProperties false", "this member is not allowed")
                : check(schema, document, index)
            path.removeLast()
        }

        // MARK: A value of JSON

        mutating func check(_ schema: Schema, _ document: JSONDocument, _ index: Int) {
            let token = document.tokens[index]
            guard !schema.isNever else { return add("false", "the schema allows no value here") }
            if let types = schema.types, !document.isOf(types, index) {
                return addType(types, "\(document.description(of: index)) is")
            }
            for choice in schema.choices
            where !choice.values.contains(where: { document.isEqual(index, to: $0) }) {
                add(
                    choice.rule,
                    "\(document.description(of: index)) is not one of the allowed values"
                )
            }
            switch token.kind {
            case .null, .true, .false: break
            case .number:
                guard !schema.bounds.isEmpty else { return }
                let digits = document.digits(of: token)
                guard let number = digits.withUnsafeBytes({ ExactNumber($0) }) else { return }
                check(schema.bounds, number, String(decoding: digits, as: UTF8.self))
            case .string, .escapedString: check(text: document.text(of: token), schema)
            case .array: checkArray(schema, document, index)
            case .object: checkObject(schema, document, index)
            }
        }

        mutating func check(_ bounds: [Bound], _ number: ExactNumber, _ text: String) {
            for bound in bounds where !bound.admits(number) {
                let shown = Array(text.utf8).withUnsafeBytes {
                    $0.count > 64 ? StateError.quoted($0) : text
                }
                add("\(bound.kind.rawValue) \(bound.digits)", bound.message(shown))
            }
        }

        private mutating func checkArray(
            _ schema: Schema,
            _ document: JSONDocument,
            _ index: Int
        ) {
            let count = Int(document.tokens[index].end)
            if let least = schema.minimumItems, count < least {
                add("minItems \(least)", "it has \(count) elements, fewer than \(least)")
            }
            if let most = schema.maximumItems, count > most {
                add("maxItems \(most)", "it has \(count) elements, more than \(most)")
            }
            guard case .matching = schema.items else { return }
            var element = index + 1
            for number in 0..<count where !isFull {
                checkPart("\(number)", schema.items, document, element)
                element = Int(document.tokens[element].next)
            }
        }

        private mutating func checkObject(
            _ schema: Schema,
            _ document: JSONDocument,
            _ index: Int
        ) {
            for name in schema.required where document.member(name, of: index) == nil {
                path.append(name)
                add("required", "a value is required")
                path.removeLast()
            }
            var members: [(name: Int, value: Int)] = []
            document.forEachMember(of: index) {
                members.append(($0, $1))
                return true
            }
            // Check each one, also two with the same name: readers differ in which of them they
            // use.
            for member in members where !isFull {
                let name = document.text(of: document.tokens[member.name])
                let parts =
                    schema.properties[Array(name.utf8)].map { Parts.matching($0) } ?? schema.rest
                checkPart(name, parts, document, member.value)
            }
        }

        // MARK: A text

        /// Checks bytes that are a string.
        mutating func checkText(_ schema: Schema, _ bytes: Bytes) {
            guard !schema.isNever else { return add("false", "the schema allows no value here") }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                return addType(
                    schema.types ?? .string,
                    "\(StateError.quoted(bytes)) is not UTF-8 and"
                )
            }
            if let types = schema.types, !types.contains(.string) {
                return addType(types, "\(StateError.quoted(bytes)) is")
            }
            for choice in schema.choices where !choice.values.contains(where: { $0.isString(text) })
            {
                add(choice.rule, "\(StateError.quoted(bytes)) is not one of the allowed values")
            }
            check(text: text, schema)
        }

        private mutating func check(text: String, _ schema: Schema) {
            add(schema.minimumLength.flatMap { ValidationCheck.minimumLength($0, text) })
            add(schema.maximumLength.flatMap { ValidationCheck.maximumLength($0, text) })
            add(schema.pattern.flatMap { ValidationCheck.pattern($0, text, within: &steps) })
            add(schema.format.flatMap { $0.issue(of: text) })
        }
    }
}
