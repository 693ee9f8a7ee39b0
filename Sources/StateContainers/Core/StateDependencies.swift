import StateEngine

/// What makes code behave differently at each run: time, new ids, and random numbers.
///
/// Code that takes them from ``current`` can be tested: a ``StateScope`` has its own.
///
/// ```swift
/// var dependencies = StateDependencies()
/// dependencies.makeID = StateDependencies.countingIDs()
/// StateScope.run(with: dependencies) {
///     #expect(StateDependencies.current.makeID() == "id-1")
/// }
/// ```
public struct StateDependencies: Sendable {
    /// The clock, of stores too whose initializer names none.
    public var clock: any Clock<Duration> = ContinuousClock()
    /// Returns an id that no other call returns: 32 hexadecimal digits.
    public var makeID: @Sendable () -> String = StateDependencies.randomID
    /// The random numbers.
    public var random = StateRandom(SystemRandomNumberGenerator())

    /// Makes those of a program that runs.
    public init() {}

    /// Those of the present scope, else those of a program that runs.
    public static var current: StateDependencies { StateScope.current?.dependencies ?? standard }

    private static let standard = StateDependencies()

    /// Returns `id-1`, `id-2` and so on.
    public static func countingIDs(_ prefix: String = "id-") -> @Sendable () -> String {
        let last = Count()
        return { "\(prefix)\(last.next())" }
    }

    private static let randomID: @Sendable () -> String = {
        let digits = (0..<2).map { _ in
            let half = String(UInt64.random(in: 0...UInt64.max), radix: 16)
            return String(repeating: "0", count: 16 - half.count) + half
        }
        return digits.joined()
    }

    private final class Count: Sendable {
        private let last = StateLock(0)

        func next() -> Int {
            last.withLock { last in
                last += 1
                return last
            }
        }
    }
}

/// A source of random numbers that threads may share.
///
/// ```swift
/// var random = StateDependencies.current.random
/// let die = Int.random(in: 1...6, using: &random)
/// ```
public final class StateRandom: RandomNumberGenerator, Sendable {
    private let generator: StateLock<any RandomNumberGenerator & Sendable>

    /// Makes a source that takes its numbers from `generator`.
    public init(_ generator: some RandomNumberGenerator & Sendable) {
        self.generator = StateLock(generator)
    }

    /// The next number.
    public func next() -> UInt64 { generator.withLock { $0.next() } }
}
