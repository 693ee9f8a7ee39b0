import StateJSON
import StateModel

/// A JSON object on one line, made field by field: `{"revision":12,"key":"audio/volume","value":"0.7"}`.
///
/// Strings are plain: what is UTF-8 is written as it is, but for `"`, `\`, control characters and what changes the direction of
/// writing.
package struct JSONLine: Sendable {
    private var text: [UInt8] = [UInt8(ascii: "{")]

    /// Makes an object without a field.
    package init() {}

    /// The line, with its newline.
    package var line: [UInt8] { text + [UInt8(ascii: "}"), UInt8(ascii: "\n")] }

    /// The object without a newline.
    package var object: [UInt8] { text + [UInt8(ascii: "}")] }

    /// Adds a number.
    package mutating func add(_ name: String, number: Int64) {
        appendName(name)
        text += String(number).utf8
    }

    /// Adds a value that is JSON already.
    package mutating func add(_ name: String, json value: [UInt8]) {
        appendName(name)
        text += value
    }

    /// Adds a null.
    package mutating func add(nullNamed name: String) {
        appendName(name)
        text += "null".utf8
    }

    /// Adds a string.
    package mutating func add(_ name: String, text string: String) {
        add(name, bytes: Array(string.utf8))
    }

    /// Adds an array of strings.
    package mutating func add(_ name: String, texts strings: [String]) {
        appendName(name)
        text.append(UInt8(ascii: "["))
        for (index, string) in strings.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            Array(string.utf8).withUnsafeBytes { appendString($0) }
        }
        text.append(UInt8(ascii: "]"))
    }

    /// Adds a string of bytes that are UTF-8; U+FFFD stands for each byte that is not.
    package mutating func add(_ name: String, bytes: [UInt8]) {
        appendName(name)
        bytes.withUnsafeBytes { appendString($0) }
    }

    /// Adds bytes as a string under one name, or where they are not UTF-8 as base 64 under another.
    package mutating func add(value bytes: [UInt8], named name: String, elseBase64 other: String) {
        guard bytes.withUnsafeBytes({ UTF8Sequence.isValid($0) }) else {
            appendName(other)
            text.append(UInt8(ascii: "\""))
            bytes.withUnsafeBytes { Base64.append($0, to: &text) }
            text.append(UInt8(ascii: "\""))
            return
        }
        add(name, bytes: bytes)
    }

    private mutating func appendName(_ name: String) {
        if text.count > 1 { text.append(UInt8(ascii: ",")) }
        var name = name
        name.withUTF8 { appendString(Bytes($0)) }
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

    /// Adds a scalar of the basic plane as an escape.
    private mutating func appendEscape(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "\n": text += "\\n".utf8
        case "\t": text += "\\t".utf8
        case "\r": text += "\\r".utf8
        default:
            text += "\\u".utf8
            for shift: UInt32 in [12, 8, 4, 0] {
                let digit = UInt8(scalar.value >> shift & 15)
                text.append(Hexadecimal.digit(digit, upperCase: false))
            }
        }
    }
}
