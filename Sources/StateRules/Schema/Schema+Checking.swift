package import StateEngine
package import StateJSON

extension Schema {
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
    /// - Complexity: O(*n*) in the bytes. With `pattern` times the size of the pattern, and with
    ///   schemas that are combined times their number, up to a limit. A number allocates nothing.
    package func issues(of bytes: Bytes, depthLimit: Int) -> [ValidationIssue] {
        if isNumeric { return numericIssues(bytes) }
        var check = SchemaCheck(table)
        if let document = document(bytes, depthLimit, &check) {
            check.checkDocument(root, document)
        } else if check.issues.isEmpty {
            check.checkText(root, bytes)
        }
        return check.issues
    }

    /// The issues of a value that is JSON, whatever the types say.
    ///
    /// - Complexity: as ``issues(of:depthLimit:)``.
    package func issues(of document: JSONDocument) -> [ValidationIssue] {
        var check = SchemaCheck(table)
        check.checkDocument(root, document)
        return check.issues
    }

    /// The JSON document of the bytes, unless they are read as a string.
    private func document(
        _ bytes: Bytes,
        _ depthLimit: Int,
        _ check: inout SchemaCheck
    ) -> JSONDocument? {
        let possible = possibleTypes
        let first = bytes.first { !JSONScanner.isSpace($0) }
        let isAggregate = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        guard possible != .string, let first, first != UInt8(ascii: "\"") else { return nil }
        do throws(JSONFault) {
            let document = try JSONDocument(Array(bytes), depthLimit: depthLimit)
            return document.isOf(possible, 0) || !possible.contains(.string) ? document : nil
        } catch {
            let mayBeText = possible.contains(.string) && !(isAggregate && !namesTypes)
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
        let keywords = root.keywords
        guard let types = keywords.types, !types.isEmpty, types.isSubset(of: .numeric) else {
            return false
        }
        return keywords.choices.isEmpty && !keywords.isNever && keywords.more == nil
    }

    /// The integers of at most 15 digits that the bounds allow.
    ///
    /// Found by binary search, because the bounds are exact numbers of any length.
    package var plainIntegers: ClosedRange<Int64>? {
        let bounds = root.keywords.bounds
        guard isNumeric, !bounds.contains(where: { $0.kind == .multipleOf }) else { return nil }
        let largest: Int64 = 999_999_999_999_999
        func isAdmitted(_ number: Int64, by kinds: [SchemaKeywords.Bound.Kind]) -> Bool {
            let exact = Array(String(number).utf8).withUnsafeBytes { ExactNumber($0) }
            guard let exact else { return false }
            return bounds.allSatisfy { !kinds.contains($0.kind) || $0.admits(exact) }
        }
        /// The end of the range on one side; nil if the range is empty.
        func end(_ side: Int64, _ kinds: [SchemaKeywords.Bound.Kind]) -> Int64? {
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
        let keywords = root.keywords
        var check = SchemaCheck(table)
        guard let number = ExactNumber(bytes.trimmed) else {
            check.addType(keywords.types ?? .number, "\(StateError.quoted(bytes)) is")
            return check.issues
        }
        if keywords.types == .integer, !number.isInteger {
            check.addType(.integer, "\(bytes.trimmed.text) is")
        } else if keywords.bounds.contains(where: { !$0.admits(number) }) {
            check.check(keywords.bounds, number, bytes.trimmed.text)
        }
        return check.issues
    }
}

extension SchemaKeywords.Bound {
    func admits(_ value: ExactNumber) -> Bool {
        switch kind {
        case .minimum: value.order(to: number) >= 0
        case .maximum: value.order(to: number) <= 0
        case .exclusiveMinimum: value.order(to: number) > 0
        case .exclusiveMaximum: value.order(to: number) < 0
        case .multipleOf: value.isMultiple(of: number)
        }
    }

    func message(_ text: String) -> String {
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
