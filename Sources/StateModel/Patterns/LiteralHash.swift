/// A hash of bytes that are added one by one, so that one walk over a key computes the hash of each
/// of its prefixes.
///
/// FNV-1a from a random start, so that nobody can choose literals that collide.
@frozen
package struct LiteralHash {
    @usableFromInline var state = LiteralHash.seed
    @usableFromInline var byteCount = 0

    @usableFromInline static let seed = UInt64.random(in: 0...UInt64.max)

    /// The hash of no bytes.
    @inlinable
    package init() {}

    /// The hash of some bytes.
    ///
    /// - Complexity: O(*n*) in the bytes.
    @inlinable
    package init(of bytes: some Sequence<UInt8>) {
        for byte in bytes { take(byte) }
    }

    /// Adds one byte.
    @inlinable
    package mutating func take(_ byte: UInt8) {
        state = (state ^ UInt64(byte)) &* 0x100_0000_01B3
        byteCount += 1
    }

    /// The hash of the bytes that were added.
    @inlinable
    package var value: Int {
        Int(truncatingIfNeeded: (state ^ (state >> 32)) &+ UInt64(byteCount))
    }
}
