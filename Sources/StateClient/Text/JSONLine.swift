import StateJSON
import StateModel

/// A JSON object on one line, made field by field:
/// `{"revision":12,"key":"audio/volume","value":"0.7"}`.
///
/// UTF-8 is written as it is, except for `"`, `\`, control characters and characters that are not
/// seen or change the direction of writing.
package struct JSONLine: Sendable, ExpressibleByDictionaryLiteral {
    /// The value of a field.
    package enum Field: Sendable {
        /// A number; nil for null.
        case number(Int64?)
        /// A string; nil for null.
        case text(String?)
        /// A string of bytes; each byte that is not UTF-8 becomes U+FFFD.
        case bytes([UInt8])
        /// A value: a string, or base 64 if the bytes are not UTF-8. Base 64 has the name of the
        /// field with `Base64` appended, or `base64` for `value`.
        case value([UInt8])
        /// An array of strings.
        case texts([String])
        /// JSON text.
        case json([UInt8])
    }

    private var text: [UInt8] = [UInt8(ascii: "{")]

    /// Makes an object of these fields; nil fields are omitted.
    package init(dictionaryLiteral fields: (String, Field?)...) {
        for case (let name, let field?) in fields { add(name, field) }
    }

    /// The line, with its newline.
    package var line: [UInt8] { text + [UInt8(ascii: "}"), UInt8(ascii: "\n")] }

    /// The object without a newline.
    package var object: [UInt8] { text + [UInt8(ascii: "}")] }

    /// Appends a field.
    package mutating func add(_ name: String, _ field: Field) {
        if case .value(let bytes) = field, !bytes.withUnsafeBytes({ UTF8Sequence.isValid($0) }) {
            appendName(name == "value" ? "base64" : name + "Base64")
            text.append(UInt8(ascii: "\""))
            bytes.withUnsafeBytes { Base64.append($0, to: &text) }
            text.append(UInt8(ascii: "\""))
            return
        }
        appendName(name)
        switch field {
        case .number(let number?): text += String(number).utf8
        case .text(let string?): appendString(string)
        case .number(nil), .text(nil): text += "null".utf8
        case .bytes(let bytes), .value(let bytes): bytes.withUnsafeBytes { appendString($0) }
        case .texts(let strings): append(strings)
        case .json(let json): text += json
        }
    }

    private mutating func append(_ strings: [String]) {
        text.append(UInt8(ascii: "["))
        for (index, string) in strings.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            appendString(string)
        }
        text.append(UInt8(ascii: "]"))
    }

    private mutating func appendString(_ string: String) {
        var string = string
        string.withUTF8 { appendString(Bytes($0)) }
    }

    private mutating func appendName(_ name: String) {
        if text.count > 1 { text.append(UInt8(ascii: ",")) }
        appendString(name)
        text.append(UInt8(ascii: ":"))
    }

    private mutating func appendString(_ bytes: Bytes) {
        text.append(UInt8(ascii: "\""))
        var index = 0
        while index < bytes.count {
            let length = UTF8Sequence.length(in: bytes, at: index)
            if length == 0 {
                text += "\u{FFFD}".utf8
            } else if let scalar = UTF8Sequence.misleading(in: bytes, at: index, length: length) {
                appendEscape(scalar)
            } else {
                if bytes[index] == UInt8(ascii: "\"") || bytes[index] == UInt8(ascii: "\\") {
                    text.append(UInt8(ascii: "\\"))
                }
                text += bytes[index..<index + length]
            }
            index += max(1, length)
        }
        text.append(UInt8(ascii: "\""))
    }

    /// Appends a scalar as an escape, or as two if it is above the basic plane.
    private mutating func appendEscape(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "\n": text += "\\n".utf8
        case "\t": text += "\\t".utf8
        case "\r": text += "\\r".utf8
        default:
            for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
                text += "\\u".utf8
                for shift: UInt16 in [12, 8, 4, 0] {
                    let digit = UInt8(unit >> shift & 15)
                    text.append(Hexadecimal.digit(digit, upperCase: false))
                }
            }
        }
    }
}
