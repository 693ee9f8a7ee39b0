/// Identifies a value without keeping it: its length and 64 bits of hash, the same in every
/// process.
struct ValueDigest: Hashable {
    let byteCount: Int
    let hash: UInt64

    /// - Complexity: O(*n*) in the bytes, eight at a time.
    init(_ value: Bytes) {
        byteCount = value.count
        var hash = UInt64(truncatingIfNeeded: value.count) &* 0x9E37_79B9_7F4A_7C15
        var index = 0
        while index + 8 <= value.count {
            ValueDigest.mix(
                value.loadUnaligned(fromByteOffset: index, as: UInt64.self),
                into: &hash
            )
            index += 8
        }
        var rest: UInt64 = 0
        while index < value.count {
            rest = rest << 8 | UInt64(value[index])
            index += 1
        }
        ValueDigest.mix(rest, into: &hash)
        hash ^= hash >> 29
        self.hash = hash &* 0xBF58_476D_1CE4_E5B9
    }

    init(_ value: [UInt8]) { self = value.withUnsafeBytes { ValueDigest($0) } }

    /// Multiplies to 128 bits and uses both halves.
    private static func mix(_ word: UInt64, into hash: inout UInt64) {
        let (high, low) = (hash ^ word ^ 0xA076_1D64_78BD_642F)
            .multipliedFullWidth(by: 0xE703_7ED1_A0B4_28DB)
        hash = high ^ low &+ word
    }
}

extension ValueDigest: CustomStringConvertible {
    /// The length and the hash, as ``init(_:)-(Substring)`` reads them.
    var description: String { "\(byteCount):\(String(hash, radix: 16))" }

    init?(_ text: Substring) {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let byteCount = Int(parts[0]),
            let hash = UInt64(parts[1], radix: 16)
        else { return nil }
        self.byteCount = byteCount
        self.hash = hash
    }
}
