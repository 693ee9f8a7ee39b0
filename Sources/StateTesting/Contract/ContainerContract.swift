public import StateContainers

/// What containers on any ``Keyspace`` keep to, as checks for those who write their own keyspace.
///
/// Each rule uses keys below a prefix of its own and deletes them at the end.
public struct ContainerContract: Sendable {
    /// A rule of the contract; its raw value is the sentence that a violation names.
    public enum Rule: String, CaseIterable, Sendable, CustomStringConvertible {
        /// Two containers on one key.
        case isVisible = "when modify returns, every container of the key has the change"
        /// Bodies that fail.
        case isAtomic = "a body that fails changes nothing"
        /// Four threads, and others who write the key.
        case losesNothing = "of increments by 4 threads and by others none is lost"
        /// `ifRevision`.
        case comparesRevisions = "a value is replaced only at the revision that was read"
        /// Bytes that do not decode.
        case keepsWhatItCannotRead = "what does not decode stays until it is replaced"
        /// Nothing, an entry, and its end.
        case knowsItsOrigin = "what is not stored is the default, and says so"
        /// A container of another type.
        case hasOneType = "two containers of different types are never on one key"
        /// Three containers.
        case commitsTogether = "a transaction over containers is one commit, or changes nothing"
        /// `didModify`.
        case deliversInOrder = "didModify runs once for each change, ascending, never twice at once"
        /// `flush`, after changes that nobody waited for.
        case flushesAll = "after flush the keyspace has every change"

        /// The sentence.
        public var description: String { rawValue }
    }

    let keyspace: any Keyspace
    let other: any Keyspace

    /// The contract of containers on one keyspace.
    ///
    /// - Parameters:
    ///   - keyspace: Where the containers are.
    ///   - other: The same keyspace on a second connection, where there is such a thing; what is written there is others' writes.
    public init(_ keyspace: any Keyspace, other: (any Keyspace)? = nil) {
        self.keyspace = keyspace
        self.other = other ?? keyspace
    }

    /// Checks all rules.
    ///
    /// - Throws: The first violation.
    public func check() async throws(ContractViolation) {
        for rule in Rule.allCases { try await check(rule) }
    }

    /// Checks one rule.
    ///
    /// - Throws: ``ContractViolation``, also where the keyspace failed.
    public func check(_ rule: Rule) async throws(ContractViolation) {
        let place = ContractPlace(keyspace)
        // The only rule that waits as tasks do.
        if rule == .flushesAll { return try await checkFlush(place) }
        try Judge.run(rule.rawValue) { judge in
            switch rule {
            case .isVisible: try checkVisibility(place, judge)
            case .isAtomic: try checkAtomicity(place, judge)
            case .losesNothing: try checkIncrements(place, judge)
            case .comparesRevisions: try checkRevisions(place, judge)
            case .keepsWhatItCannotRead: try checkUndecodable(place, judge)
            case .knowsItsOrigin: try checkOrigin(place, judge)
            case .hasOneType: try checkTypes(place, judge)
            case .commitsTogether: try checkTransactions(place, judge)
            case .deliversInOrder: try checkTelling(place, judge)
            case .flushesAll: break
            }
            try place.clear()
        }
    }
}

extension StateCodec<Int> {
    /// Decimal digits and nothing else.
    static let contractDigits = StateCodec { (value) throws(StateError) in
        Array(String(value).utf8)
    } decode: { (bytes) throws(StateError) in
        let text = String(decoding: bytes ?? [], as: UTF8.self)
        guard let value = Int(text) else {
            throw StateError(.undecodable, "expected an integer, found '\(text)'")
        }
        return value
    }
}
