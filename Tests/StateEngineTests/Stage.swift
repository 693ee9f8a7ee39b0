import StateEngine
import StateTestSupport
import Testing

/// A keyspace whose storage and settling the test steps by hand, on its own thread.
///
/// Every step ends when nothing moves by itself any more, so a test is the same each time that it runs.
final class Stage {
    let backing: HeldBacking
    let keyspace: LocalKeyspace
    private let wakes = Observed(0)
    private var causes: [InternedCause] = []

    init(_ backing: HeldBacking = HeldBacking(), limits: Limits = Limits()) throws {
        self.backing = backing
        keyspace = try LocalKeyspace(backing: backing, limits: limits)
        keyspace.settleElsewhere { [wakes] in wakes.update { $0 += 1 } }
    }

    deinit {
        backing.open()
        keyspace.close()
    }

    func withCore<R, E: Error>(_ body: (KeyspaceCore) throws(E) -> R) throws(E) -> R {
        try keyspace.withCore { (core) throws(E) -> R in try body(core) }
    }

    /// A writer, the same for the same number.
    func cause(_ uid: UInt32) -> InternedCause {
        if let known = causes.first(where: { $0.cause.uid == uid }) { return known }
        let cause = withCore {
            $0.retainCause(
                Cause(uid: uid, gid: 1, pid: 2, command: "test", client: "writer \(uid)")
            )
        }
        causes.append(cause)
        return cause
    }

    /// What is wrong with the keyspace; empty where nothing is.
    func faults() -> [String] { withCore { $0.checkInvariants(retainedCauseCount: causes.count) } }

    // MARK: Writing

    /// Runs one transaction; where `body` throws, it is rolled back.
    ///
    /// - Returns: Its revision; 0 where it changed nothing.
    @discardableResult
    func transact(
        by uid: UInt32 = 7,
        at time: Int64 = 1_000,
        _ body: (KeyspaceCore) throws(StateError) -> Void
    ) throws(StateError) -> Int64 {
        let (report, error) = report(by: uid, at: time) { (core, _) throws(StateError) in
            try body(core)
        }
        if let error { throw error }
        return report.revision
    }

    /// What an answer that reports a transaction depends on.
    struct Report {
        /// The transaction's; 0 if it changed nothing or was rolled back.
        var revision: Int64 = 0
        var awaited: Int64 = 0
        var isFinal = false
    }

    /// Runs one transaction; if `body` throws, it is rolled back.
    func report(
        by uid: UInt32 = 7,
        at time: Int64 = 1_000,
        _ body: (KeyspaceCore, inout Receipt) throws(StateError) -> Void
    ) -> (Report, StateError?) {
        let cause = cause(uid)
        return withCore { core in
            var receipt = core.makeReceipt()
            var report = Report()
            var failure: StateError?
            core.begin(cause, at: time)
            do throws(StateError) {
                try body(core, &receipt)
                report.revision = core.finish(&receipt)
            } catch {
                core.rollBack()
                failure = error
            }
            (report.awaited, report.isFinal) = (receipt.revision, receipt.isFinal)
            return (report, failure)
        }
    }

    @discardableResult
    func set(_ key: String, _ value: String) throws(StateError) -> Int64 {
        try transact { (core) throws(StateError) in try core.set(key, value) }
    }

    @discardableResult
    func delete(_ key: String) throws(StateError) -> Int64 {
        try transact { (core) throws(StateError) in try core.delete(key) }
    }

    /// From here on the rules of a start hold; what moves by them is handed to the commit thread.
    ///
    /// - Returns: How many keys have moved.
    @discardableResult
    func install(rules: KeyRules) throws(StateError) -> Int {
        let cause = cause(7)
        let count = try withCore { (core) throws(StateError) in
            try core.install(rules: rules, cause: cause, at: 1_000)
        }
        keyspace.publish()
        return count
    }

    // MARK: Storage

    /// Hands what was written to the commit thread, where a commit waits afterwards.
    ///
    /// - Returns: Its changes: of what was handed over, or of what waited before.
    @discardableResult
    func publish() throws -> [HeldBacking.Change] {
        keyspace.publish()
        return try #require(backing.held(), "nothing was handed over")
    }

    /// Lets the commit that waits succeed and settles it.
    func succeed() throws {
        backing.release()
        try settle()
    }

    /// Makes the commit that waits fail and settles it.
    func fail(_ error: StateError = StateError(.noSpace, "the disk is full")) throws {
        backing.fail(error)
        try settle()
    }

    /// Publishes what was written and lets it succeed.
    func commit() throws {
        try publish()
        try succeed()
    }

    /// Takes over what storage answers next.
    func settle() throws {
        let woke = wakes.take { count -> Bool? in
            guard count > 0 else { return nil }
            count -= 1
            return true
        }
        try #require(woke == true, "storage did not answer")
        keyspace.settle { outcomes.append($0) }
    }

    /// What became of the batches.
    private(set) var outcomes: [LocalKeyspace.Outcome] = []

    // MARK: Reading

    /// The newest values, provisional or not.
    func newest() -> [String: String] {
        var values: [String: String] = [:]
        withCore { core in
            core.forEachNewest(PatternSet([.everything])) { record in
                values[record.key.text] = record.value?.text
                return true
            }
        }
        return values
    }

    /// The values on stable storage.
    func durable() -> [String: String] {
        var values: [String: String] = [:]
        withCore { core in
            core.forEachDurable(PatternSet([.everything]), after: nil) { record in
                values[record.key.text] = record.value?.text
                return true
            }
        }
        return values
    }

    /// What reading `key` now counts as looked at: its provisional revision, or 0.
    func observed(reading key: String) -> Int64 {
        withCore { core in
            var receipt = core.makeReceipt()
            _ = core.read(key, &receipt)
            return receipt.revision
        }
    }
}

extension KeyspaceCore {
    func read(_ key: String) -> Record? {
        var receipt = makeReceipt()
        return read(key, &receipt)
    }

    func read(_ key: String, _ receipt: inout Receipt) -> Record? {
        Array(key.utf8).withUnsafeBytes { read($0, &receipt) }
    }

    /// The newest versions, provisional or not, until `body` says false.
    func forEachNewest(
        _ patterns: PatternSet,
        after bound: Bytes? = nil,
        _ body: (Record) -> Bool
    ) {
        var receipt = makeReceipt()
        var budget = Int.max
        _ = forEach(patterns, after: bound, comparing: &budget, &receipt, body)
    }

    func readDurable(_ key: String) -> Record? {
        Array(key.utf8).withUnsafeBytes { readDurable($0) }
    }

    func set(_ key: String, _ value: String, expiry: Expiry = .ruled) throws(StateError) {
        try Array(key.utf8).withBorrowed { (key) throws(StateError) in
            try Array(value.utf8).withBorrowed { (value) throws(StateError) in
                try set(key, to: value, expiry: expiry)
            }
        }
    }

    func append(_ key: String, _ suffix: String) throws(StateError) {
        try Array(key.utf8).withBorrowed { (key) throws(StateError) in
            try Array(suffix.utf8).withBorrowed { (suffix) throws(StateError) in
                var receipt = makeReceipt()
                let value = read(key, &receipt)?.value ?? Bytes(start: nil, count: 0)
                try set(key, to: value, appending: suffix)
            }
        }
    }

    @discardableResult
    func delete(_ key: String) throws(StateError) -> Bool {
        var receipt = makeReceipt()
        return try delete(key, &receipt)
    }

    @discardableResult
    func delete(_ key: String, _ receipt: inout Receipt) throws(StateError) -> Bool {
        try Array(key.utf8).withBorrowed { (key) throws(StateError) in try delete(key, &receipt) }
    }

    func check(_ condition: Condition, _ key: String) throws(StateError) {
        var receipt = makeReceipt()
        try check(condition, key, &receipt)
    }

    func check(
        _ condition: Condition,
        _ key: String,
        _ receipt: inout Receipt
    ) throws(StateError) {
        try Array(key.utf8).withBorrowed { (key) throws(StateError) in
            try check(condition, of: key, &receipt)
        }
    }
}
