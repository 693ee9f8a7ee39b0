package import StateModel

/// Base 64 with padding, as in section 4 of RFC 4648.
package enum Base64 {
    /// Appends the encoded form of `bytes`.
    package static func append(_ bytes: Bytes, to text: inout [UInt8]) {
        text.reserveCapacity(text.count + (bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let count = min(3, bytes.count - index)
            var group: UInt32 = 0
            for place in 0..<3 {
                group = group << 8 | (place < count ? UInt32(bytes[index + place]) : 0)
            }
            for place in 0..<4 {
                let value = UInt8(truncatingIfNeeded: group >> UInt32(18 - 6 * place)) & 63
                text.append(place <= count ? digits[Int(value)] : UInt8(ascii: "="))
            }
            index += 3
        }
    }

    /// The bytes; nil for a text that ``append(_:to:)`` does not write.
    package static func decoded(_ text: [UInt8]) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        let padding = text.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var group: UInt32 = 0
        for (index, character) in text.dropLast(padding).enumerated() {
            guard let value = values[Int(character)] else { return nil }
            group = group << 6 | UInt32(value)
            guard index % 4 == 3 else { continue }
            for shift in [16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: group >> shift)) }
            group = 0
        }
        // The bits below the last byte must be 0, so that no two texts mean the same bytes.
        switch padding {
        case 1:
            guard group & 3 == 0 else { return nil }
            bytes += [
                UInt8(truncatingIfNeeded: group >> 10), UInt8(truncatingIfNeeded: group >> 2),
            ]
        case 2:
            guard group & 15 == 0 else { return nil }
            bytes.append(UInt8(truncatingIfNeeded: group >> 4))
        default: break
        }
        return bytes
    }

    /// The bytes of a text as a person or a program may have written it: with line breaks and other
    /// white space, and without padding; nil for any other text.
    package static func decoded(typed text: some Sequence<UInt8>) -> [UInt8]? {
        var digits = text.filter { !JSONScanner.isSpace($0) }
        if digits.last != UInt8(ascii: "=") {
            digits += repeatElement(UInt8(ascii: "="), count: -digits.count & 3)
        }
        return decoded(digits)
    }

    private static let digits = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )

    /// The value of each digit; nil for other bytes.
    private static let values: [UInt8?] = (0...255).map { (byte: UInt8) in
        digits.firstIndex(of: byte).map { UInt8($0) }
    }
}
