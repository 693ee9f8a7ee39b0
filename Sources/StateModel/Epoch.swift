/// The identity of a store: random.
///
/// A different epoch means a different or a restored store.
public struct Epoch: Hashable, Sendable {
    /// 64 random bits, never 0.
    public let bits: UInt64

    /// An epoch that was stored before.
    public init(bits: UInt64) { self.bits = bits }

    /// A new identity.
    public static func random() -> Epoch { Epoch(bits: .random(in: 1...UInt64.max)) }
}

extension Epoch: CustomStringConvertible, LosslessStringConvertible {
    /// 16 hexadecimal digits.
    public var description: String {
        let digits = String(bits, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Reads 1 to 16 hexadecimal digits.
    public init?(_ text: String) {
        guard text.utf8.count <= 16, let bits = UInt64(text, radix: 16), bits != 0,
            text.utf8.first != UInt8(ascii: "+")
        else { return nil }
        self.bits = bits
    }
}
