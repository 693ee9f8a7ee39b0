import Glibc

/// Where the random tests begin: another place in each run, or the one of `STATED_TEST_SEED`.
package enum Seed {
    /// The seed of this run, printed once, before anything can fail by it.
    package static let base: UInt64 = {
        let given = getenv("STATED_TEST_SEED").flatMap { UInt64(String(cString: $0)) }
        let seed = given ?? UInt64.random(in: 0..<1_000_000_000)
        print("random tests: STATED_TEST_SEED=\(seed) repeats this run")
        fflush(nil)
        return seed
    }()

    /// As many seeds as a test wants to be run with.
    package static func each(_ count: Int) -> [UInt64] {
        (0..<UInt64(count)).map { base &+ $0 }
    }
}

/// SplitMix64 (https://prng.di.unimi.it/splitmix64.c): the same numbers for the same seed.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Whether something happens that does so in `percent` of 100 cases.
    package mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &self) < percent
    }
}
