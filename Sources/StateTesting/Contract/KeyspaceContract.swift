public import StateEngine

/// What a ``Keyspace`` has to keep to, as checks for those who write their own.
///
/// Each rule writes below a prefix of its own and deletes it at the end, so the keyspace may have other entries, and others may
/// write them meanwhile.
public struct KeyspaceContract: Sendable {
    /// A rule of the contract; its raw value is the sentence that a violation names.
    public enum Rule: String, CaseIterable, Sendable, CustomStringConvertible {
        /// A transaction of several mutations.
        case appliesAllOrNone = "the mutations of a transaction are one commit, or none is made"
        /// Sets, deletes and checks at a revision.
        case checksConditions = "a condition that does not hold refuses, and the key stays as it is"
        /// Random transactions, beside a dictionary.
        case isADictionary = "after any transactions the entries are those of a dictionary"
        /// Empty and large values, the longest key.
        case takesTheBounds = "an empty value, 1 MiB and a key of 1,024 bytes are read as they were"
        /// Pages of all sizes.
        case listsInOrder = "entries come in byte order, each once, page by page"
        /// What a new watch hears.
        case deliversTheState = "a watch is told the state of its patterns, then each commit"
        /// Several patterns of one watch.
        case neverSplits = "a commit is told whole, and once, however many patterns it touches"
        /// At the time of the completion.
        case deliversBeforeItAnswers = "a watch was told of a commit before its writer is answered"
        /// Inclusion, exclusion and the end.
        case followsWhatIsIncluded = "a watch hears of what it includes, until that is excluded"
        /// Several watches of the same and of other patterns.
        case deliversToEachWatch =
            "each of several watches is told what it follows, and nothing else"
        /// Four writers.
        case keepsOneOrder = "under 4 writers all watches are told all commits in one order"
        /// Watches that begin while 4 threads write.
        case converges = "who replays a watch has the entries of the keyspace"
        /// Writes by who is told.
        case takesWritesFromObservers = "who is told of a commit may submit the next"

        /// The sentence.
        public var description: String { rawValue }
    }

    let keyspace: any Keyspace
    let other: any Keyspace
    let seed: UInt64
    let patience: Duration

    /// The contract of one keyspace.
    ///
    /// - Parameters:
    ///   - keyspace: Whose watches are told before its writers are answered.
    ///   - other: The same keyspace on a second connection, where there is such a thing.
    ///   - seed: Where the random transactions begin.
    ///   - patience: How long it waits for an answer or an event before it calls it missing.
    public init(
        _ keyspace: any Keyspace,
        other: (any Keyspace)? = nil,
        seed: UInt64 = 1,
        patience: Duration = .seconds(20)
    ) {
        self.keyspace = keyspace
        self.other = other ?? keyspace
        self.seed = seed
        self.patience = patience
    }

    /// Checks all rules.
    ///
    /// - Throws: The first violation.
    /// - Complexity: Some 3,000 commits.
    public func check() throws(ContractViolation) {
        for rule in Rule.allCases { try check(rule) }
    }

    /// Checks one rule.
    ///
    /// - Throws: ``ContractViolation``, also where the keyspace failed, or did not tell what it has to in time.
    public func check(_ rule: Rule) throws(ContractViolation) {
        try Judge.run(rule.rawValue, patience) { judge in
            let place = ContractPlace(keyspace)
            switch rule {
            case .appliesAllOrNone: try checkAllOrNone(place, judge)
            case .checksConditions: try checkConditions(place, judge)
            case .isADictionary: try checkDictionary(place, judge)
            case .takesTheBounds: try checkBounds(place, judge)
            case .listsInOrder: try checkListing(place, judge)
            case .deliversTheState: try checkState(place, judge)
            case .neverSplits: try checkWholeness(place, judge)
            case .deliversBeforeItAnswers: try checkAnswers(place, judge)
            case .followsWhatIsIncluded: try checkInclusion(place, judge)
            case .deliversToEachWatch: try checkWatches(place, judge)
            case .keepsOneOrder: try checkOrder(place, judge)
            case .converges: try checkConvergence(place, judge)
            case .takesWritesFromObservers: try checkFeedback(place, judge)
            }
            try place.clear()
        }
    }
}

/// A prefix of a keyspace that nobody else writes.
struct ContractPlace: Sendable {
    private let keyspace: any Keyspace
    private let prefix: String

    init(_ keyspace: any Keyspace) {
        self.keyspace = keyspace
        prefix = "contract/\(UInt64.random(in: 0...UInt64.max))/"
    }

    /// A key in it.
    func key(_ name: String) throws -> Key { try Key(prefix + name) }

    func key(_ number: Int) throws -> Key { try key("k\(number)") }

    /// All of it, or what is below a name of it.
    func pattern(_ name: String = "") throws -> Pattern { try Pattern(prefix + name) }

    /// Its values, read page by page.
    func values(in keyspace: any Keyspace, below name: String = "") throws -> [Key: [UInt8]] {
        try entries(in: keyspace, below: name).mapValues(\.value)
    }

    func entries(in keyspace: any Keyspace, below name: String = "") throws -> [Key: Entry] {
        let found = try keyspace.entries(pattern(name), after: nil, limit: 100_000)
        return try Dictionary(found.map { ($0.key, $0.entry) }) { first, second in
            throw StateError(.err, "an entry is listed twice: \(first) and \(second)")
        }
    }

    func clear() throws {
        let keys = try entries(in: keyspace).keys
        if !keys.isEmpty { try keyspace.apply(keys.map { .delete($0) }) }
    }
}
