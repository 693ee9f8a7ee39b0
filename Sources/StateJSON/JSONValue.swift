public import StateModel

/// A value of JSON, as migrations see a stored value.
///
/// Objects are written in byte order of their names; the order of members is not part of the value.
public enum JSONValue: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number, with its digits as written: no precision is lost.
    case number(String)
    /// A string.
    case string(String)
    /// An array.
    indirect case array([JSONValue])
    /// An object; of several members with the same name, the first.
    indirect case object([String: JSONValue])

    /// Reads a JSON text that consists of one value.
    ///
    /// - Throws: ``StateError/Code/undecodable``, naming the problem and its offset.
    /// - Complexity: O(*n*). Arrays and objects may be nested 512 deep.
    public init(parsing text: [UInt8]) throws(StateError) {
        do {
            self.init(try JSONDocument(text), 0)
        } catch {
            throw StateError(.undecodable, "\(StateError.quoted(text)): \(error.description)")
        }
    }

    /// The JSON text, with sorted names and without white space.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if a number is not valid in JSON, or the value is nested
    ///   deeper than 512.
    /// - Complexity: O(*n* log *n*).
    public func text() throws(StateError) -> [UInt8] {
        var writer = JSONWriter()
        var fault: String?
        append(to: &writer, &fault)
        if let fault {
            throw StateError(.err, "\(StateError.quoted(fault.utf8)) is not a JSON number")
        }
        return try writer.text()
    }

    /// The members of an object; empty for any other value.
    public var members: [String: JSONValue] {
        guard case .object(let members) = self else { return [:] }
        return members
    }

    /// The member with that name; nil if there is none, or the value is not an object.
    ///
    /// Setting one makes an object of any other value, and nil removes the member.
    public subscript(name: String) -> JSONValue? {
        get { members[name] }
        set {
            var members = members
            // Releases the old members, so that they are changed in place.
            self = .null
            members[name] = newValue
            self = .object(members)
        }
    }

    package init(_ document: JSONDocument, _ place: Int) {
        let token = document.tokens[place]
        switch token.kind {
        case .null: self = .null
        case .false: self = .bool(false)
        case .true: self = .bool(true)
        case .number: self = .number(String(decoding: document.digits(of: token), as: UTF8.self))
        case .string, .escapedString: self = .string(document.text(of: token))
        case .array:
            var elements: [JSONValue] = []
            var element = place + 1
            for _ in 0..<token.end {
                elements.append(JSONValue(document, element))
                element = Int(document.tokens[element].next)
            }
            self = .array(elements)
        case .object:
            var members: [String: JSONValue] = [:]
            document.forEachMember(of: place) {
                let name = document.text(of: document.tokens[$0])
                if members[name] == nil { members[name] = JSONValue(document, $1) }
                return true
            }
            self = .object(members)
        }
    }

    /// Appends the text; `fault` is the first number that is not valid in JSON.
    private func append(to writer: inout JSONWriter, _ fault: inout String?) {
        switch self {
        case .null: writer.append(word: "null")
        case .bool(let value): writer.append(word: value ? "true" : "false")
        case .string(let text): writer.append(string: text)
        case .number(let digits):
            if !JSONValue.isNumber(digits) { fault = fault ?? digits }
            writer.append(word: digits)
        case .array(let elements):
            writer.append(elements, in: "[", "]") { $1.append(to: &$0, &fault) }
        case .object(let members):
            let sorted = members.sorted { JSONWriter.order($0.key, $1.key) < 0 }
            writer.append(sorted, in: "{", "}") {
                $0.append(name: $1.key)
                $1.value.append(to: &$0, &fault)
            }
        }
    }

    private static func isNumber(_ digits: String) -> Bool {
        guard let document = try? JSONDocument(Array(digits.utf8)) else { return false }
        return document.tokens[0].kind == .number
            && !digits.utf8.contains(where: JSONScanner.isSpace)
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// `null`.
    public init(nilLiteral: ()) { self = .null }

    /// A Boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// A whole number.
    public init(integerLiteral value: Int) { self = .number(String(value)) }

    /// A number; a literal is finite.
    public init(floatLiteral value: Double) { self = .number("\(value)") }

    /// A string.
    public init(stringLiteral text: String) { self = .string(text) }

    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    /// An object; of several members with the same name, the first.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(Dictionary(members) { first, _ in first })
    }
}
