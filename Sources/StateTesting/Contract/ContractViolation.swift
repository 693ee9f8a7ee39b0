import StateEngine

/// A violated rule of a contract, with the values that show it.
public struct ContractViolation: Error, Hashable, Sendable {
    /// The rule, as a sentence.
    public let rule: String
    /// What was found instead.
    public let finding: String

    init(_ rule: String, _ finding: String) {
        self.rule = rule
        self.finding = finding
    }

    /// Makes a violation of an error: the error itself if it is one.
    init(_ rule: String, _ error: any Error) {
        self = error as? ContractViolation ?? ContractViolation(rule, "\(error)")
    }
}

extension ContractViolation: CustomStringConvertible {
    /// The rule and what was found instead.
    public var description: String { "rule violated: \(rule): \(finding)" }
}

/// Compares results with one rule.
struct Judge: Sendable {
    let rule: String
    /// How long to wait for an answer or an event.
    let patience: Duration

    /// Runs a check; any error is a violation of the rule.
    static func run(
        _ rule: String,
        _ patience: Duration = .seconds(20),
        _ body: (Judge) throws -> Void
    ) throws(ContractViolation) {
        do { try body(Judge(rule: rule, patience: patience)) } catch {
            throw ContractViolation(rule, error)
        }
    }

    func expect(_ holds: Bool, _ finding: @autoclosure () -> String) throws {
        guard holds else { throw ContractViolation(rule, finding()) }
    }

    func expectEqual<Value: Equatable>(
        _ found: Value,
        _ expected: Value,
        _ what: @autoclosure () -> String
    ) throws {
        try expect(found == expected, "\(what()) is \(found), not \(expected)")
    }

    /// Waits until `value` returns a result.
    func wait<Value>(
        _ semaphore: BlockingSemaphore,
        for what: @autoclosure () -> String,
        _ value: () -> Value?
    ) throws -> Value {
        let deadline = ContinuousClock.now + patience
        while true {
            if let value = value() { return value }
            try expect(ContinuousClock.now < deadline, "\(what()) did not come in \(patience)")
            semaphore.wait(nanoseconds: 100_000_000)
        }
    }

    /// - Returns: The error.
    @discardableResult
    func expectRefusal<R>(
        _ code: StateError.Code,
        _ what: String,
        _ body: () throws -> R
    ) throws -> StateError {
        let outcome = Result { try body() }
        if case .failure(let error as StateError) = outcome, error.code == code { return error }
        throw ContractViolation(rule, "\(what): expected \(code), not \(outcome)")
    }
}

/// Random numbers, the same for the same seed.
struct ContractRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// SplitMix64, https://prng.di.unimi.it/splitmix64.c.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    mutating func chance(_ percent: Int) -> Bool { number(below: 100) < percent }

    mutating func number(below bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}

/// Runs `body` on `count` threads at once; throws the first error.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let failures = StateLock<[any Error]>([])
    let threads = (0..<count).map { WorkerThread(name: "contract \($0)") }
    for (number, thread) in threads.enumerated() {
        thread.start {
            do { try body(number) } catch { failures.withLock { $0.append(error) } }
        }
    }
    for thread in threads { thread.join() }
    if let failure = failures.withLock({ $0.first }) { throw failure }
}
