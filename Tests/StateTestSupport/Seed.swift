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

    /// As many seeds as a test wants to be run with; one where ThreadSanitizer makes each run slow.
    package static func each(_ count: Int) -> [UInt64] {
        (0..<(Extent.isSanitized ? 1 : UInt64(count))).map { base &+ $0 }
    }
}

extension SplitMix {
    /// Whether something happens that does so in `percent` of 100 cases.
    package mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &self) < percent
    }
}
