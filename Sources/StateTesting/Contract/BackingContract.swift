public import StateEngine

/// What a ``Backing`` has to keep to, as checks for those who write their own.
///
/// ```swift
/// @Test(arguments: BackingContract.Rule.allCases)
/// func `the backing keeps to the contract`(rule: BackingContract.Rule) throws {
///     let path = temporaryPath()
///     try BackingContract(keeping: .history) { MyBacking(path: path) }.check(rule)
/// }
/// ```
///
/// Each rule may be checked on a store that has something in it; what is there stays, beside keys that begin with `contract/`.
public struct BackingContract: Sendable {
    /// What of a commit a backing keeps when it is closed.
    public enum Keeping: Sendable {
        /// Every change with all that is known of it; the epoch stays.
        case history
        /// The last value of each key.
        case values
        /// Nothing: each start is empty, and another epoch.
        case nothing
    }

    /// A rule of the contract; its raw value is the sentence that a violation names.
    public enum Rule: String, CaseIterable, Sendable, CustomStringConvertible {
        /// Random transactions, one by one.
        case keepsEveryChange = "what is committed is there after close and load, in order, whole"
        /// Empty and large values, the longest key.
        case keepsTheBounds =
            "an empty value, 1 MiB and a key of 1,024 bytes come back as they were"
        /// Deletes, and what comes after them.
        case keepsDeletes = "what was deleted is absent, and set again it begins anew"
        /// Several transactions at once, and large ones.
        case keepsWholeBatches = "all transactions of a batch are kept, and all changes of each"
        /// As many as were asked for, 10,000 by default.
        case keepsManyCommits = "of thousands of commits each is kept"
        /// The object is released without `close`.
        case survivesAnUncleanEnd = "what is committed is there after an end without close"
        /// Epoch and revision over several starts.
        case keepsItsIdentity = "the revision never goes back within an epoch"
        /// `reopen`, after a commit whose outcome is unknown where one can be had.
        case reopensExactly = "reopen hands out exactly what is beyond what was told"
        /// Two owners.
        case hasOneOwner = "a second open while the first is open is LOCKED"
        /// Under `LocalKeyspace`, with 4 writers.
        case servesAKeyspace = "a keyspace on it has the same entries after close and open"

        /// The sentence.
        public var description: String { rawValue }
    }

    let keeping: Keeping
    let commitCount: Int
    let seed: UInt64
    let makeOutcomeUnknown: (@Sendable (any Backing) -> Void)?
    let open: @Sendable () throws -> any Backing

    /// The contract of one store.
    ///
    /// - Parameters:
    ///   - keeping: What it promises to keep.
    ///   - commitCount: How many commits are many; their number is what ``Rule/keepsManyCommits`` costs.
    ///   - seed: Where the random histories begin.
    ///   - makeOutcomeUnknown: Makes the next commit of a backing fail with ``StateError/Code/readOnly`` and a message that
    ///     begins with `outcome unknown`; without it ``Rule/reopensExactly`` is checked with nothing beyond.
    ///   - open: Makes a backing that is not loaded yet; always on the same store.
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
    /// - Throws: The first violation; the store holds what was committed so far.
    /// - Complexity: Some 2 times `commitCount` commits.
    public func check() throws(ContractViolation) {
        for rule in Rule.allCases { try check(rule) }
    }

    /// Checks one rule.
    ///
    /// - Throws: ``ContractViolation``, also where the backing failed.
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
