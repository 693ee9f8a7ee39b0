import StateEngine
import StateLinearizability
import StateTestSupport
import StateWire

/// What one client asks of a few keys, at random, knowing the revisions that it was told.
struct KeyTraffic {
    /// Sums of INCRBY stay below the next value that somebody sets.
    private static let valueStep = 1_000

    let client: Int
    let keys: [String]
    var random: SplitMix
    private var valueCount = 0
    private var revisions: [String: Int64] = [:]

    init(client: Int, keys: [String], seed: UInt64) {
        self.client = client
        self.keys = keys
        random = SplitMix(seed: seed)
    }

    /// Requests for one write, mostly one, sometimes several that mostly name the same key.
    mutating func nextRequests() -> [(key: String, request: Operation.Request)] {
        let count = random.chance(25) ? Int.random(in: 2...4, using: &random) : 1
        var key = nextKey()
        return (0..<count).map { _ in
            if random.chance(30) { key = nextKey() }
            return (key, nextRequest(key))
        }
    }

    /// Remembers the revision that an answer told.
    mutating func note(_ outcome: Operation.Outcome, of key: String) {
        switch outcome {
        case .revision(let revision), .conflict(let revision): revisions[key] = revision
        case .entry(let entry): revisions[key] = entry?.revision ?? 0
        default: break
        }
    }

    private mutating func nextKey() -> String { keys.randomElement(using: &random) ?? "k" }

    private mutating func nextRequest(_ key: String) -> Operation.Request {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<30: .get
        case ..<42: .getEntry
        case ..<57: .set(nextValue())
        case ..<65: .delete
        case ..<80: .add(Int64.random(in: 1...9, using: &random))
        default: .setEntry(nextValue(), ifRevision: nextCondition(key))
        }
    }

    private mutating func nextCondition(_ key: String) -> Int64? {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<65: revisions[key] ?? 0
        case ..<85: nil
        default: 0
        }
    }

    /// A value that nobody else sets: mostly a number, sometimes a word.
    private mutating func nextValue() -> String {
        valueCount += 1
        guard !random.chance(8) else { return "word-\(client)-\(valueCount)" }
        return String((client + 1) * 10_000_000 + valueCount * KeyTraffic.valueStep)
    }
}

extension Operation.Request {
    /// The command that asks for it.
    func command(_ key: String) -> [[UInt8]] {
        let words: [String] =
            switch self {
            case .get: ["GET", key]
            case .getEntry: ["STATE.GET", key]
            case .set(let value): ["SET", key, value]
            case .setEntry(let value, nil): ["STATE.SET", key, value]
            case .setEntry(let value, let revision?):
                ["STATE.SET", key, value, "IFREV", String(revision)]
            case .delete: ["DEL", key]
            case .add(let number): ["INCRBY", key, String(number)]
            }
        return words.map { Array($0.utf8) }
    }

    /// What an answer says; nil where this request has no such answer.
    func outcome(of reply: Reply) -> Operation.Outcome? {
        if case .error(let error) = reply { return Self.outcome(of: error) }
        switch (self, reply) {
        case (.get, .null): return .value(nil)
        case (.get, .bulk): return .value(reply.textValue)
        case (.getEntry, .null): return .entry(nil)
        case (.getEntry, .map):
            guard let value = reply["value"]?.textValue,
                let revision = reply["revision"]?.integerValue
            else { return nil }
            return .entry(.init(value, at: revision))
        case (.set, .simple("OK")): return .done
        case (.setEntry, .map): return reply["revision"]?.integerValue.map { .revision($0) }
        case (.delete, .integer(let count)) where count == 0 || count == 1:
            return .deleted(count == 1)
        case (.add, .integer(let sum)): return .sum(sum)
        default: return nil
        }
    }

    private static func outcome(of error: StateError) -> Operation.Outcome? {
        if error.code == .conflict {
            // The last number of the message is the current revision.
            let digits = error.message.reversed().drop { !$0.isNumber }.prefix { $0.isNumber }
            return Int64(String(digits.reversed())).map { .conflict($0) }
        }
        if error.message == "value is not an integer or out of range" { return .notANumber }
        let isUnknown = error.code == .readOnly && error.message.hasPrefix("outcome unknown")
        return isUnknown ? .unknown : .refused(error.description)
    }
}
