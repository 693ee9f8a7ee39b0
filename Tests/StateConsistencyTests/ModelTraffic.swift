import StateTestSupport

/// Random commands.
///
/// How many numbers are drawn does not depend on the model's content, so that one seed gives the same
/// commands however a crash ended, but for the revisions in them.
struct ModelTraffic {
    static let keys = [
        "a", "a/1", "a/2", "a/b/1", "ab", "b", "b/1", "b/2", "n/1", "n/2", "\u{E9}/1", "z",
    ]
    private static let patterns = [
        "a/", "b/", "n/", "a", "b/1", "a*", "*/1", "?/2", "a/b/", "nothing/", "\u{E9}/", "z?*", "/",
    ]
    private static let globs = ["*", "a*", "?", "*/1", "b/?", "ab", "a/", "/", "n*2", "\u{E9}*"]

    var random: SplitMix

    /// A command for a keyspace that the model describes.
    mutating func next(_ model: ModelKeyspace) -> ModelCommand {
        if random.chance(12) {
            let count = Int.random(in: 1...5, using: &random)
            return .transaction((0..<count).map { _ in single(model, isQueued: true) })
        }
        return single(model, isQueued: false)
    }

    /// A glob, and how many keys SCAN looks at in one call.
    mutating func nextScan() -> (glob: String?, count: Int) {
        let glob = Self.globs.randomElement(using: &random)
        return (random.chance(50) ? glob : nil, Int.random(in: 1...5, using: &random))
    }

    private mutating func single(_ model: ModelKeyspace, isQueued: Bool) -> ModelCommand {
        let choice = Int.random(in: 0..<100, using: &random)
        return choice < 30 ? reading(choice, isQueued) : writing(choice, model)
    }

    private mutating func reading(_ choice: Int, _ isQueued: Bool) -> ModelCommand {
        switch choice {
        case ..<6: return .get(key())
        case ..<8: return .multiGet(keys())
        case ..<11: return .exists(keys())
        case ..<13: return .length(key())
        case ..<15: return .keys(glob: Self.globs.randomElement(using: &random) ?? "*")
        case ..<21:
            let key = key()
            // Who wrote it and when is no business of the model: asked apart, where it can be taken off.
            return isQueued ? .get(key) : .stateGet(key)
        default: return list()
        }
    }

    private mutating func list() -> ModelCommand {
        let (pattern, after) = (pattern(), key())
        let limit = Int.random(in: 0...6, using: &random)
        let form: ModelCommand.ListForm = random.chance(60) ? .entries : .keys
        return .stateList(
            pattern,
            after: random.chance(25) ? after : nil,
            limit: random.chance(40) ? limit : nil,
            random.chance(15) ? .count : form
        )
    }

    private mutating func writing(_ choice: Int, _ model: ModelKeyspace) -> ModelCommand {
        switch choice {
        case ..<40:
            let presence: ModelCommand.Presence = random.chance(50) ? .absent : .present
            let isConditional = random.chance(30)
            return .set(
                key(),
                value(),
                isConditional ? presence : nil,
                returnsOld: random.chance(20)
            )
        case ..<46:
            let pairs = keys().map { (key: $0, value: value()) }
            return .multiSet(pairs, onlyIfAllAbsent: random.chance(25))
        case ..<54: return .delete(keys())
        case ..<58: return .getDelete(key())
        case ..<64: return .append(key(), value())
        case ..<72: return .add(key(), Int64.random(in: -3...9, using: &random))
        case ..<85: return .stateSet(key(), value(), conditions(model))
        case ..<96:
            let count = Int.random(in: 0...4, using: &random)
            return .stateApply((0..<count).map { _ in step(model) })
        default:
            let patterns = (0..<Int.random(in: 1...2, using: &random)).map { _ in pattern() }
            return .stateDelete(patterns, isDryRun: random.chance(30))
        }
    }

    private mutating func conditions(_ model: ModelKeyspace) -> [ModelCommand.SetCondition] {
        let presence: ModelCommand.Presence = random.chance(40) ? .absent : .present
        let (revision, value) = (revision(of: key(), model), value())
        switch Int.random(in: 0..<100, using: &random) {
        case ..<25: return []
        case ..<45: return [.presence(presence)]
        case ..<75: return [.revision(revision)]
        case ..<90: return [.value(value)]
        default: return [.presence(presence), .revision(revision)]
        }
    }

    private mutating func step(_ model: ModelKeyspace) -> ModelCommand.ApplyStep {
        let (key, value) = (key(), value())
        let revision = revision(of: key, model)
        let condition = random.chance(25) ? revision : nil
        switch Int.random(in: 0..<100, using: &random) {
        case ..<60: return .set(key, value, ifRevision: condition)
        case ..<88: return .delete(key, ifRevision: condition)
        default: return .check(key, revision)
        }
    }

    /// Mostly the revision of the key, sometimes another's.
    private mutating func revision(of key: String, _ model: ModelKeyspace) -> Int64 {
        let other = self.key()
        let key = random.chance(85) ? key : other
        return model.entries[key]?.revision ?? 0
    }

    private mutating func key() -> String { Self.keys.randomElement(using: &random) ?? "a" }

    private mutating func keys() -> [String] {
        (0..<Int.random(in: 1...4, using: &random)).map { _ in key() }
    }

    private mutating func pattern() -> String {
        Self.patterns.randomElement(using: &random) ?? "/"
    }

    private mutating func value() -> String {
        let number = Int.random(in: -5...40, using: &random)
        let length = Int.random(in: 0...3_000, using: &random)
        return switch Int.random(in: 0..<100, using: &random) {
        case ..<65: String(number)
        case ..<85: "word \(number)"
        case ..<90: ""
        case ..<95: String(Int64.max)
        default: String(repeating: "\u{E9}", count: length)
        }
    }
}
