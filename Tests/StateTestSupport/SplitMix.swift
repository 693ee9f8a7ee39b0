/// Random numbers that are the same in every run for one seed.
package struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    /// Begins a sequence.
    package init(seed: UInt64) { state = seed }

    /// The next 64 bits, as in https://prng.di.unimi.it/splitmix64.c.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    /// Bytes of any value.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}
