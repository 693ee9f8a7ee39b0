package import StateModel

/// Why a text is not JSON (RFC 8259).
package struct JSONFault: Error {
    package let message: String
    /// The offset at which reading stopped, in bytes.
    package let offset: Int
    /// Whether it may be valid JSON that is nested too deep for the reader.
    package var isTooDeep = false

    package var description: String { "\(message) at byte \(offset)" }
}

/// One element of a JSON text, in the order of the text; the names of an object's members are
/// strings that come before their values.
package struct JSONToken {
    package enum Kind: UInt8 {
        case null
        case `false`
        case `true`
        case number
        /// A string without escapes.
        case string
        case escapedString
        case array
        case object
    }

    package var kind: Kind
    /// The offset of the first byte; for a string, of the one after its quote.
    package var start: UInt32
    /// The offset after the last byte; for an array or object, the number of its elements or
    /// members.
    package var end: UInt32
    /// The index of the next token after this one and everything inside it.
    package var next: UInt32
}

/// A JSON text that was parsed once: its bytes, and a flat list of its tokens.
///
/// A tree of values was rejected: a decoder reads few of them, each once, and a list is one
/// allocation.
package final class JSONDocument {
    package let bytes: [UInt8]
    package let tokens: [JSONToken]

    /// The largest nesting depth of arrays and objects; Foundation has the same limit.
    package static let depthLimit = 512

    /// Reads a text that consists of one value.
    ///
    /// - Complexity: O(*n*), and at most 8 times as much memory as the text.
    package init(
        _ bytes: [UInt8],
        depthLimit: Int = JSONDocument.depthLimit
    ) throws(JSONFault) {
        self.bytes = bytes
        guard bytes.count < Int(UInt32.max) else {
            throw JSONFault(message: "the text is too long", offset: 0)
        }
        tokens = try bytes.withUnsafeBytes { (text) -> Result<[JSONToken], JSONFault> in
            Result { () throws(JSONFault) in
                var scanner = JSONScanner(text: text, depthLimit: depthLimit)
                try scanner.scanDocument()
                return scanner.tokens
            }
        }.get()
    }

    /// Takes a string without quotes, whose bytes must be UTF-8.
    package init(string bytes: [UInt8]) {
        self.bytes = bytes
        let end = UInt32(clamping: bytes.count)
        tokens = [JSONToken(kind: .string, start: 0, end: end, next: 1)]
    }

    /// The text of a string.
    package func text(of token: JSONToken) -> String {
        let range = Int(token.start)..<Int(token.end)
        guard token.kind == .escapedString else {
            return String(decoding: bytes[range], as: UTF8.self)
        }
        var text = ""
        bytes.withUnsafeBytes { text = JSONScanner.unescaped($0, in: range) }
        return text
    }

    /// Whether a string is `name`; bytes are compared, not characters.
    package func isString(_ token: JSONToken, _ name: String) -> Bool {
        var text = name
        return text.withUTF8 { isString(token, name, Bytes($0)) }
    }

    private func isString(_ token: JSONToken, _ name: String, _ nameBytes: Bytes) -> Bool {
        guard token.kind == .string else { return text(of: token) == name }
        return bytes.withUnsafeBytes {
            $0.slice(Int(token.start), Int(token.end)).isEqual(to: nameBytes)
        }
    }

    /// The digits of a number, as written.
    package func digits(of token: JSONToken) -> ArraySlice<UInt8> {
        bytes[Int(token.start)..<Int(token.end)]
    }

    /// Calls `body` with the indices of the name and the value of each member, until it returns
    /// false.
    package func forEachMember(of place: Int, _ body: (_ name: Int, _ value: Int) -> Bool) {
        var name = place + 1
        for _ in 0..<tokens[place].end {
            guard body(name, name + 1) else { return }
            name = Int(tokens[name + 1].next)
        }
    }

    /// The index of the value of the first member named `name`.
    package func member(_ name: String, of place: Int) -> Int? {
        var text = name
        return text.withUTF8 { bytes in
            var token = place + 1
            for _ in 0..<tokens[place].end {
                if isString(tokens[token], name, Bytes(bytes)) { return token + 1 }
                token = Int(tokens[token + 1].next)
            }
            return nil
        }
    }

    /// The index of the value of the last member named `name`.
    package func lastMember(_ name: String, of place: Int) -> Int? {
        var found: Int?
        forEachMember(of: place) {
            if isString(tokens[$0], name) { found = $1 }
            return true
        }
        return found
    }

    /// The value at `place`, for an error message.
    package func description(of place: Int) -> String {
        let token = tokens[place]
        return switch token.kind {
        case .null: "null"
        case .false: "false"
        case .true: "true"
        case .number: "the number \(StateError.quoted(digits(of: token)))"
        case .string, .escapedString: "the string \(StateError.quoted(text(of: token).utf8))"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

extension StateError {
    /// Bytes as shown in a message.
    package static func quoted(_ bytes: some Sequence<UInt8>) -> String {
        Array(bytes).withUnsafeBytes { quoted($0) }
    }
}
