import StateJSON
package import StateModel

/// Bytes as one line of text that is safe on a terminal.
///
/// `\` is written `\\`, a newline `\n`, a tab `\t`. Other control characters (C0, delete, C1),
/// characters that are not seen or change the direction of writing, and bytes that are not UTF-8 are
/// written `\xNN`, byte by byte. ``decoded(_:)`` restores the exact bytes.
package enum EscapedText {
    /// Appends the escaped form of `bytes`.
    package static func append(_ bytes: Bytes, to text: inout [UInt8]) {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            let length = UTF8Sequence.length(in: bytes, at: index)
            if byte == UInt8(ascii: "\\") {
                text += [byte, byte]
            } else if byte == UInt8(ascii: "\n") {
                text += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
            } else if byte == UInt8(ascii: "\t") {
                text += [UInt8(ascii: "\\"), UInt8(ascii: "t")]
            } else if length == 0 {
                appendHexadecimal(byte, to: &text)
            } else if UTF8Sequence.misleading(in: bytes, at: index, length: length) != nil {
                for byte in bytes[index..<index + length] { appendHexadecimal(byte, to: &text) }
            } else {
                text += bytes[index..<index + length]
            }
            index += max(1, length)
        }
    }

    /// Appends a key as it is written before ` = `, so that the line can be read back: what is
    /// special in a line, such as `=`, a leading `{` or a leading `#`, is escaped too.
    package static func append(key: Bytes, to text: inout [UInt8]) {
        let begin = text.count
        append(key, to: &text)
        escape(&text, from: begin, where: ForeignText.isSpecial(inKey:at:))
    }

    /// Appends a value as it is written after ` = `: a leading quote, a space at either end and the
    /// `#` of ` # ` are escaped too, because ``ImportLine`` refuses them.
    package static func append(value: Bytes, to text: inout [UInt8]) {
        let begin = text.count
        append(value, to: &text)
        guard ForeignText.mayBeSpecial(value: text[begin...]) else { return }
        escape(&text, from: begin, where: ForeignText.isSpecial(inValue:at:))
    }

    /// Escapes what is special in a text whose other escapes are written already.
    private static func escape(
        _ text: inout [UInt8],
        from begin: Int,
        where isSpecial: (ArraySlice<UInt8>, Int) -> Bool
    ) {
        let plain = text[begin...]
        let places = plain.indices.filter { isSpecial(plain, $0) }
        guard let first = places.first else { return }
        text.removeSubrange(first...)
        var next = first
        for place in places {
            text += plain[next..<place]
            appendHexadecimal(plain[place], to: &text)
            next = place + 1
        }
        text += plain[next...]
    }

    /// The bytes of an escaped form; a `\` that starts no escape is kept.
    package static func decoded(_ text: Bytes) -> [UInt8] {
        guard text.contains(UInt8(ascii: "\\")) else { return Array(text) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            let (byte, length) = escape(in: text, at: index) ?? (text[index], 1)
            bytes.append(byte)
            index += length
        }
        return bytes
    }

    private static func escape(in text: Bytes, at index: Int) -> (byte: UInt8, length: Int)? {
        guard text[index] == UInt8(ascii: "\\"), index + 1 < text.count else { return nil }
        switch text[index + 1] {
        case UInt8(ascii: "\\"): return (UInt8(ascii: "\\"), 2)
        case UInt8(ascii: "n"): return (UInt8(ascii: "\n"), 2)
        case UInt8(ascii: "t"): return (UInt8(ascii: "\t"), 2)
        case UInt8(ascii: "x"):
            guard index + 3 < text.count, let high = Hexadecimal.value(of: text[index + 2]),
                let low = Hexadecimal.value(of: text[index + 3])
            else { return nil }
            return (high << 4 | low, 4)
        default: return nil
        }
    }

    private static func appendHexadecimal(_ byte: UInt8, to text: inout [UInt8]) {
        text += [
            UInt8(ascii: "\\"), UInt8(ascii: "x"), Hexadecimal.digit(byte >> 4, upperCase: true),
            Hexadecimal.digit(byte & 15, upperCase: true),
        ]
    }
}

/// Digits of base 16.
enum Hexadecimal {
    static func digit(_ value: UInt8, upperCase: Bool) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: upperCase ? "A" : "a") + value - 10
    }

    static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
