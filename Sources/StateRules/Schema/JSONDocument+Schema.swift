import StateJSON

extension JSONDocument {
    /// Whether the value at `place` has one of the types.
    func isOf(_ types: SchemaTypes, _ place: Int) -> Bool {
        let token = tokens[place]
        guard token.kind == .number, !types.contains(.number) else {
            return !SchemaTypes(token.kind).isDisjoint(with: types)
        }
        let number = digits(of: token).withUnsafeBytes { ExactNumber($0) }
        return types.contains(.integer) && number?.isInteger ?? false
    }

    /// Whether the value at `place` equals `value` as JSON Schema compares: numbers by value,
    /// objects without regard to the order of their members.
    func isEqual(_ place: Int, to value: JSONValue) -> Bool {
        let token = tokens[place]
        switch (token.kind, value) {
        case (.null, .null), (.true, .bool(true)), (.false, .bool(false)): return true
        case (.number, .number(let text)):
            guard let number = digits(of: token).withUnsafeBytes({ ExactNumber($0) }) else {
                return false
            }
            return ExactNumber(text).map { $0.order(to: number) == 0 } ?? false
        case (.string, .string), (.escapedString, .string):
            return value.isString(text(of: token))
        case (.array, .array(let elements)):
            guard elements.count == Int(token.end) else { return false }
            var element = place + 1
            return elements.allSatisfy { value in
                defer { element = Int(tokens[element].next) }
                return isEqual(element, to: value)
            }
        case (.object, .object(let members)):
            guard members.count == Int(token.end) else { return false }
            return members.allSatisfy { name, value in
                member(name, of: place).map { isEqual($0, to: value) } ?? false
            }
        default: return false
        }
    }
}

extension JSONDocument {
    /// The bytes of all strings and numbers in a value, as written.
    ///
    /// - Complexity: O(*n*) in the tokens of the value.
    func byteCount(of place: Int) -> Int {
        tokens[place..<Int(tokens[place].next)].reduce(0) { count, token in
            token.kind == .array || token.kind == .object
                ? count : count + Int(token.end - token.start)
        }
    }

    /// Appends bytes that are the same for two values exactly if they are equal as JSON Schema
    /// compares.
    ///
    /// - Complexity: O(*n* log *n*)
    func appendCanonical(_ place: Int, to form: inout [UInt8]) {
        let token = tokens[place]
        let kind = token.kind == .escapedString ? JSONToken.Kind.string : token.kind
        form.append(kind.rawValue)
        switch token.kind {
        case .null, .true, .false: break
        case .number:
            let number = digits(of: token).withUnsafeBytes { ExactNumber($0) }
            if let number { append(number.canonicalText.utf8, to: &form) }
        case .string, .escapedString: append(text(of: token).utf8, to: &form)
        case .array:
            var element = place + 1
            for _ in 0..<token.end {
                appendCanonical(element, to: &form)
                element = Int(tokens[element].next)
            }
            form.append(.max)
        case .object:
            var members: [(name: [UInt8], value: Int)] = []
            forEachMember(of: place) {
                members.append((Array(text(of: tokens[$0]).utf8), $1))
                return true
            }
            members.sort { $0.name.lexicographicallyPrecedes($1.name) }
            for member in members {
                append(member.name, to: &form)
                appendCanonical(member.value, to: &form)
            }
            form.append(.max)
        }
    }

    /// Appends bytes after their number, so that it is clear where they end.
    private func append(_ bytes: some Collection<UInt8>, to form: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(clamping: bytes.count)) { form += $0 }
        form += bytes
    }
}

extension JSONValue {
    /// Whether it is the string of exactly these code points; Swift's `==` also accepts canonically
    /// equivalent ones.
    func isString(_ text: String) -> Bool {
        guard case .string(let own) = self else { return false }
        return own.utf8.elementsEqual(text.utf8)
    }

    /// Its types in JSON Schema.
    var schemaTypes: SchemaTypes {
        switch self {
        case .null: .null
        case .bool: .boolean
        case .number: .numeric
        case .string: .string
        case .array: .array
        case .object: .object
        }
    }
}
