/// SHA-1 (FIPS 180-4), by which Redis names scripts.
///
/// It protects nothing: scripts are only compared with those that are known.
package struct SHA1: Hashable, Sendable {
    /// 20 bytes as five numbers.
    private let words: [UInt32]

    /// Reads 40 hexadecimal digits, in any case; nil if these are none.
    package init?(_ digits: some StringProtocol) {
        guard digits.utf8.count == 40 else { return nil }
        var words: [UInt32] = []
        var rest = digits[...]
        while !rest.isEmpty {
            guard let word = UInt32(rest.prefix(8), radix: 16) else { return nil }
            words.append(word)
            rest = rest.dropFirst(8)
        }
        self.words = words
    }

    /// Hashes bytes.
    ///
    /// - Complexity: O(*n*).
    package init(of bytes: some Sequence<UInt8>) {
        var message = Array(bytes)
        let bitCount = UInt64(message.count) * 8
        message.append(0x80)
        while message.count % 64 != 56 { message.append(0) }
        for shift in stride(from: 56, through: 0, by: -8) {
            message.append(UInt8(truncatingIfNeeded: bitCount >> UInt64(shift)))
        }
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        for start in stride(from: 0, to: message.count, by: 64) {
            SHA1.add(message[start..<start + 64], to: &state)
        }
        words = state
    }

    private static func add(_ block: ArraySlice<UInt8>, to state: inout [UInt32]) {
        var schedule = [UInt32](repeating: 0, count: 80)
        for index in 0..<16 {
            let start = block.startIndex + 4 * index
            schedule[index] = block[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<80 {
            let mixed =
                schedule[index - 3] ^ schedule[index - 8] ^ schedule[index - 14]
                ^ schedule[index - 16]
            schedule[index] = rotate(mixed, 1)
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for index in 0..<80 {
            let (choice, constant): (UInt32, UInt32) =
                switch index {
                case ..<20: (b & c | ~b & d, 0x5A82_7999)
                case ..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case ..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let next = rotate(a, 5) &+ choice &+ e &+ constant &+ schedule[index]
            (a, b, c, d, e) = (next, a, rotate(b, 30), c, d)
        }
        for (index, word) in [a, b, c, d, e].enumerated() { state[index] &+= word }
    }

    private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word << count | word >> (32 - count)
    }
}

extension SHA1: CustomStringConvertible {
    /// 40 hexadecimal digits in lower case.
    package var description: String {
        words.map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }.joined()
    }
}
