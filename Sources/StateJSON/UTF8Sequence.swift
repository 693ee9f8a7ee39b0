package import StateModel

/// Checks UTF-8 byte by byte, for writers of text whose bytes may be anything.
package enum UTF8Sequence {
    /// The length of the well-formed sequence at `index`; 0 if there is none.
    ///
    /// The bounds of the second byte are those of Table 3-7 of the Unicode standard: no overlong
    /// form, no surrogate, nothing above U+10FFFF.
    package static func length(in bytes: Bytes, at index: Int) -> Int {
        let first = bytes[index]
        if first < 0x80 { return 1 }
        let (length, second): (Int, ClosedRange<UInt8>)
        switch first {
        case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: return 0
        }
        guard index + length <= bytes.count, second.contains(bytes[index + 1]) else { return 0 }
        for next in bytes[(index + 2)..<(index + length)] where next & 0xC0 != 0x80 { return 0 }
        return length
    }

    /// The well-formed sequence at `index`, if it changes how the text around it is shown: see
    /// `Unicode.Scalar.misleads`.
    package static func misleading(in bytes: Bytes, at index: Int, length: Int) -> Unicode.Scalar? {
        let first = UInt32(bytes[index])
        var value = length == 1 ? first : first & (0x7F >> UInt32(length))
        for next in bytes[(index + 1)..<(index + length)] {
            value = value << 6 | UInt32(next & 0x3F)
        }
        return Unicode.Scalar(value).flatMap { $0.misleads ? $0 : nil }
    }

    /// Whether all of the bytes are UTF-8 that is shown as what it is: see `Unicode.Scalar.misleads`.
    package static func isPlain(_ bytes: Bytes) -> Bool {
        var index = 0
        while index < bytes.count {
            let length = length(in: bytes, at: index)
            guard length > 0, misleading(in: bytes, at: index, length: length) == nil else {
                return false
            }
            index += length
        }
        return true
    }

    /// Whether all of the bytes are UTF-8.
    package static func isValid(_ bytes: Bytes) -> Bool { invalidPlace(bytes) == nil }

    /// The offset of the first byte that is not part of a well-formed sequence; nil if all are.
    package static func invalidPlace(_ bytes: Bytes) -> Int? {
        var index = 0
        while index < bytes.count {
            let length = length(in: bytes, at: index)
            if length == 0 { return index }
            index += length
        }
        return nil
    }
}
