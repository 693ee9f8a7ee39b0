public import StateEngine

/// The contract of a ``Backing``, as checks for your own implementation.
///
/// ```swift
/// @Test(arguments: BackingContract.Rule.allCases)
/// func `the backing keeps to the contract`(rule: BackingContract.Rule) throws {
///     let path = temporaryPath()
///     try BackingContract(keeping: .history) { MyBacking(path: path) }.check(rule)
/// }
/// ```
///
/// Each rule may be checked on a store with other entries; they are kept, except for keys that
/// begin with `contract/`.
public struct BackingContract: Sendable {
    /// What a backing keeps of commits when it is closed.
    public enum Keeping: Sendable {
        /// Every change with all its fields, and the epoch.
        case history
        /// The last value of each key.
        case values
        /// Nothing: each start is empty, with another epoch.
        case nothing
    }

    /// A rule of the contract; its raw value is the sentence in a violation.
    public enum Rule: String, CaseIterable, Sendable, CustomStringConvertible {
        /// Random transactions, one at a time.
        case keepsEveryChange =
            "after close and load, every committed change is there, complete and in order"
        /// Empty and large values, and the longest key.
        case keepsTheBounds =
            "an empty value, 1 MiB and a key of 1,024 bytes are read back unchanged"
        /// Deletes, and later changes of the same keys.
        case keepsDeletes = "a deleted key is absent, and starts again when it is set"
        /// Several transactions at once, and large ones.
        case keepsWholeBatches = "all transactions of a batch are kept, and all changes of each"
        /// As many commits as requested, 10,000 by default.
        case keepsManyCommits = "each of thousands of commits is kept"
        /// The object is released without `close`.
        case survivesAnUncleanEnd = "after an end without close, every committed change is there"
        /// Epoch and revision over several starts.
        case keepsItsIdentity = "the revision never goes back within an epoch"
        /// `reopen`, after a commit of unknown outcome if one can be made.
        case reopensExactly = "reopen passes on exactly the changes after the acknowledged ones"
        /// Two owners.
        case hasOneOwner = "a second open during the first fails with LOCKED"
        /// Under `LocalKeyspace`, with 4 writers.
        case servesAKeyspace = "a keyspace on it has the same entries after close and open"

        /// The sentence of the rule.
        public var description: String { rawValue }
    }

    let keeping: Keeping
    let commitCount: Int
    let seed: UInt64
    let makeOutcomeUnknown: (@Sendable (any Backing) -> Void)?
    let open: @Sendable () throws -> any Backing

    /// Makes the contract of one store.
    ///
    /// - Parameters:
    ///   - keeping: What it promises to keep.
    ///   - commitCount: How many commits ``Rule/keepsManyCommits`` makes.
    ///   - seed: The seed of the random histories.
    ///   - makeOutcomeUnknown: Makes the next commit of a backing fail with
    ///     ``StateError/Code/readOnly`` and a message that begins with `outcome unknown`. Without
    ///     it, ``Rule/reopensExactly`` is checked without such a commit.
    ///   - open: Makes a backing that is not loaded yet, always on the same store.
    public init(
        keeping: Keeping,
        commitCount: Int = 10_000,
        seed: UInt64 = 1,
        makeOutcomeUnknown: (@Sendable (any Backing) -> Void)? = nil,
        open: @escaping @Sendable () throws -> any Backing
    ) {
        self.keeping = keeping
        self.commitCount = commitCount
        self.seed = seed
        self.makeOutcomeUnknown = makeOutcomeUnknown
        self.open = open
    }

    /// Checks all rules.
    ///
    /// - Throws: The first violation; the store keeps what was committed so far.
    /// - Complexity: About 2 times `commitCount` commits.
    public func check() throws(ContractViolation) {
        for rule in Rule.allCases { try check(rule) }
    }

    /// Checks one rule.
    ///
    /// - Throws: ``ContractViolation``, also if the backing fails.
    public func check(_ rule: Rule) throws(ContractViolation) {
        try Judge.run(rule.rawValue) { judge in
            switch rule {
            case .keepsEveryChange: try checkChanges(judge)
            case .keepsTheBounds: try checkBounds(judge)
            case .keepsDeletes: try checkDeletes(judge)
            case .keepsWholeBatches: try checkBatches(judge)
            case .keepsManyCommits: try checkManyCommits(judge)
            case .survivesAnUncleanEnd: try checkUncleanEnd(judge)
            case .keepsItsIdentity: try checkIdentity(judge)
            case .reopensExactly: try checkReopening(judge)
            case .hasOneOwner: try checkOwner(judge)
            case .servesAKeyspace: try checkKeyspace(judge)
            }
        }
    }
}
