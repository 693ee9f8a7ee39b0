public import StateEngine

/// The contract of a ``Keyspace``, as checks for your own implementation.
///
/// Each rule writes keys with its own prefix and deletes them at the end. The keyspace may have
/// other entries, and others may write them meanwhile.
public struct KeyspaceContract: Sendable {
    /// A rule of the contract; its raw value is the sentence in a violation.
    public enum Rule: String, CaseIterable, Sendable, CustomStringConvertible {
        /// A transaction of several mutations.
        case appliesAllOrNone = "the mutations of a transaction are one commit, or none is made"
        /// Sets, deletes and checks at a revision.
        case checksConditions = "a write whose condition fails is refused, and the key is unchanged"
        /// Random transactions, compared with a dictionary.
        case isADictionary = "after any transactions, the entries match those of a dictionary"
        /// Empty and large values, and the longest key.
        case takesTheBounds =
            "an empty value, 1 MiB and a key of 1,024 bytes are read back unchanged"
        /// Pages of all sizes.
        case listsInOrder = "entries come in byte order, each once, page by page"
        /// The first events of a new watch.
        case deliversTheState = "a watch gets the state of its patterns, then each commit"
        /// Several patterns of one watch.
        case neverSplits =
            "a commit is delivered complete and once, however many patterns it touches"
        /// Deliveries at the time of the completion.
        case deliversBeforeItAnswers =
            "a commit is delivered to watches before its writer is answered"
        /// Inclusion, exclusion and cancellation.
        case followsWhatIsIncluded =
            "a watch gets changes of the patterns it includes, until they are excluded"
        /// Several watches of the same and of other patterns.
        case deliversToEachWatch =
            "each of several watches gets what it follows, and nothing else"
        /// Four writers.
        case keepsOneOrder = "with 4 writers, all watches get all commits in one order"
        /// Watches that start while 4 threads write.
        case converges = "replaying a watch gives the entries of the keyspace"
        /// Writes by a receiver.
        case takesWritesFromObservers = "a receiver of a commit may submit the next"

        /// The sentence of the rule.
        public var description: String { rawValue }
    }

    let keyspace: any Keyspace
    let other: any Keyspace
    let seed: UInt64
    let patience: Duration

    /// Makes the contract of one keyspace.
    ///
    /// - Parameters:
    ///   - keyspace: The keyspace; its watches must get commits before its writers are answered.
    ///   - other: The same keyspace on a second connection, if possible.
    ///   - seed: The seed of the random transactions.
    ///   - patience: How long to wait for an answer or an event before it counts as missing.
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
    /// - Complexity: About 3,000 commits.
    public func check() throws(ContractViolation) {
        for rule in Rule.allCases { try check(rule) }
    }

    /// Checks one rule.
    ///
    /// - Throws: ``ContractViolation``, also if the keyspace fails, or does not deliver in time.
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

    /// A key with the prefix.
    func key(_ name: String) throws -> Key { try Key(prefix + name) }

    func key(_ number: Int) throws -> Key { try key("k\(number)") }

    /// A pattern of all its keys, or of those below a name.
    func pattern(_ name: String = "") throws -> Pattern { try Pattern(prefix + name) }

    /// Its values.
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
