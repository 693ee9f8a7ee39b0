public import StateContainers

/// The contract of containers on any ``Keyspace``, as checks for your own keyspace.
///
/// Each rule uses keys with its own prefix and deletes them at the end.
public struct ContainerContract: Sendable {
    /// A rule of the contract; its raw value is the sentence in a violation.
    public enum Rule: String, CaseIterable, Sendable, CustomStringConvertible {
        /// Two containers on one key.
        case isVisible = "when modify returns, every container of the key has the change"
        /// Bodies that fail.
        case isAtomic = "a body that fails changes nothing"
        /// Four threads, and other writers of the key.
        case losesNothing = "no increment is lost with 4 threads and other writers"
        /// `ifRevision`.
        case comparesRevisions = "a value is replaced only at the revision that was read"
        /// Bytes that do not decode.
        case keepsWhatItCannotRead = "bytes that do not decode stay until they are replaced"
        /// No entry, an entry, and its deletion.
        case knowsItsOrigin = "a value that is not stored is the default, and its origin says so"
        /// A container of another type.
        case hasOneType = "two containers of different types are never on one key"
        /// Three containers.
        case commitsTogether = "a transaction over containers is one commit, or changes nothing"
        /// `didModify`.
        case deliversInOrder = "didModify runs once for each change, ascending, never twice at once"
        /// `flush`, after changes whose callers did not wait.
        case flushesAll = "after flush the keyspace has every change"

        /// The sentence of the rule.
        public var description: String { rawValue }
    }

    let keyspace: any Keyspace
    let other: any Keyspace

    /// Makes the contract of containers on one keyspace.
    ///
    /// - Parameters:
    ///   - keyspace: The keyspace of the containers.
    ///   - other: The same keyspace on a second connection, if possible, for writes by others.
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
    /// - Throws: ``ContractViolation``, also if the keyspace fails.
    public func check(_ rule: Rule) async throws(ContractViolation) {
        let place = ContractPlace(keyspace)
        // The only rule that waits in a task.
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
            case .deliversInOrder: try checkDelivery(place, judge)
            case .flushesAll: break
            }
            try place.clear()
        }
    }
}

extension StateCodec<Int> {
    /// Decimal digits only.
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
