/// The state of a keyspace: entries, revisions, the open transaction, and what was finished and waits to be committed.
///
/// No lock of its own: every access is under the lock of its ``LocalKeyspace``, which is the proof of `@unchecked Sendable`.
/// That, and that no method calls out while it changes a field, is the proof of `@exclusivity(unchecked)`, too: the checks
/// were 14 % of the instructions of a SET (callgrind).
/// Reading is here; writing is in `KeyspaceCore+Writing`, what a commit's outcome does in `KeyspaceCore+Settling`.
@usableFromInline
package final class KeyspaceCore: @unchecked Sendable {
    // Constant once loaded.
    @exclusivity(unchecked) package internal(set) var epoch: Epoch
    /// May be exchanged between two transactions: the next one keeps to them.
    @exclusivity(unchecked) package var limits: Limits
    /// Whether commits go to storage before they are told.
    package let isPersistent: Bool

    @exclusivity(unchecked) package var entries: EntryStore
    @exclusivity(unchecked) package internal(set) var revisions: RevisionClock
    /// Whether what was can be read.
    @exclusivity(unchecked) package internal(set) var hasHistory = false

    // The rules.
    /// What the configuration says of keys; see ``exchange(rules:)``.
    @exclusivity(unchecked) package internal(set) var rules: KeyRules?
    @exclusivity(unchecked) var memoryKeys = MemoryKeys()
    /// Whether some rule limits how many keys or bytes there are.
    @exclusivity(unchecked) var countsUsage = false
    /// What is to be logged of limits that are only said.
    @exclusivity(unchecked) package var notices: [String] = []

    @exclusivity(unchecked) package internal(set) var transaction = OpenTransaction()
    /// The last thing that was refused to somebody, until who logs it has taken it.
    @exclusivity(unchecked) package var lastDenial: AccessDenial?

    @exclusivity(unchecked) var metadata = MetadataTable()
    @exclusivity(unchecked) package internal(set) var pending = PendingCommits()
    @exclusivity(unchecked) package var refusals = WriteRefusals()

    /// The backing where others may change what it holds; set before anything is written.
    @exclusivity(unchecked) var editable: (any EditableBacking)?

    /// The directories of the keys that live in files, where some do; set before anything is written.
    @exclusivity(unchecked) package internal(set) var files: FileContainers?

    package let hub = WatchHub()

    init(epoch: Epoch, revision: Int64, isPersistent: Bool, limits: Limits) {
        self.epoch = epoch
        revisions = RevisionClock(revision)
        self.isPersistent = isPersistent
        self.limits = limits
        entries = EntryStore(keepsDeleted: isPersistent)
    }

    deinit {
        entries.deallocateAll()
    }

    // MARK: Reading

    /// The newest version of `key`; nil if it is absent or has expired.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package func read(_ key: Bytes, _ receipt: inout Receipt) -> Record? {
        guard let head = entries.head(key) else { return nil }
        // What the open transaction did itself is as certain as it.
        if head.revision > revisions.durable, head.revision != transaction.revision, !head.isTold {
            receipt.noteRead(head.revision)
        }
        return head.isDeleted || isDue(head) ? nil : head
    }

    /// The newest version of `key`, expired or not; nil if it is absent.
    ///
    /// For the keyspace's own use: no answer may depend on it.
    func peek(_ key: Bytes) -> Record? {
        guard let head = entries.head(key), !head.isDeleted else { return nil }
        return head
    }

    /// The version of `key` that is on stable storage; nil where it is absent there.
    package func readDurable(_ key: Bytes) -> Record? {
        guard let version = entries.head(key)?.version(at: revisions.durable), !version.isDeleted
        else {
            return nil
        }
        return version
    }

    /// Where the newest change of `key` that is on stable storage stands in the history; nil where none is known.
    package func durablePlace(of key: Bytes) -> HistoryPlace? {
        if let version = entries.head(key)?.version(at: revisions.durable), !version.isVolatile {
            return version.place
        }
        return entries.deleted.record(for: key).map(\.place)
    }

    /// Notes that everything was looked at.
    package func observeAll(_ receipt: inout Receipt) {
        if revisions.provisional > revisions.durable { receipt.noteRead(revisions.provisional) }
    }

    /// Calls `body` for the versions on stable storage of the entries that one of `patterns` means, in key order, until it says false.
    ///
    /// - Parameters:
    ///   - patterns: Each entry comes once, however many of them mean it.
    ///   - bound: Only keys after this one.
    ///   - body: Takes a version, borrowed.
    /// - Complexity: O(*m*) in the entries below the patterns' literal parts.
    package func forEachDurable(
        _ patterns: PatternSet,
        after bound: Bytes?,
        _ body: (Record) -> Bool
    ) {
        patterns.forEach(in: entries.live, after: bound) { [durable = revisions.durable] head in
            guard let version = head.version(at: durable), !version.isDeleted else {
                return true
            }
            return body(version)
        }
    }

    /// The same, where about `byteCount` bytes of keys are compared with patterns at most.
    ///
    /// - Returns: The last key that was compared, where there may be more; nil where all were, or `body` has said false.
    package func forEachDurable(
        _ patterns: PatternSet,
        after bound: Bytes?,
        comparing byteCount: Int,
        _ body: (Record) -> Bool
    ) -> [UInt8]? {
        patterns.forEach(in: entries.live, after: bound, comparing: byteCount) {
            [durable = revisions.durable] head in
            guard let version = head.version(at: durable), !version.isDeleted else {
                return true
            }
            return body(version)
        }
    }

    /// Calls `body` for the newest versions that are not on stable storage yet, deletes among them, in key order.
    package func forEachProvisional(_ patterns: PatternSet, _ body: (Record) -> Void) {
        patterns.forEach(in: entries.live, after: nil) { [durable = revisions.durable] head in
            if head.revision > durable { body(head) }
            return true
        }
    }

    /// Who wrote the newest version of `key`; nil if it is absent.
    package func newestCause(of key: Bytes) -> Cause? { peek(key).map { cause(of: $0) } }

    /// Who wrote a version.
    package func cause(of record: Record) -> Cause { entries.causes[record.cause].cause }

    /// The same, as ``Cause/description`` in UTF-8.
    package func causeBytes(of record: Record) -> [UInt8] { entries.causes[record.cause].bytes }

    // MARK: Causes

    /// A cause for a session's transactions, kept until `release`.
    package func retainCause(_ cause: Cause) -> InternedCause { entries.causes.intern(cause) }

    package func release(_ cause: InternedCause) { entries.causes.release(cause) }
}
