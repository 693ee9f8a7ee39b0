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

    // The entries.
    @exclusivity(unchecked) var table: EntryTable
    @exclusivity(unchecked) var causes = CauseTable()
    @exclusivity(unchecked) var pool = RecordPool()
    /// Entries without the provisional ones.
    @exclusivity(unchecked) package internal(set) var durableKeyCount = 0

    // Revisions.
    /// The newest revision that a transaction took, committed or not; failed ones are never used again.
    @exclusivity(unchecked) package internal(set) var newestRevision: Int64
    /// The newest revision that waits for storage; not above `durableRevision` where none does.
    @exclusivity(unchecked) package internal(set) var provisionalRevision: Int64
    /// Up to here everything is on stable storage.
    @exclusivity(unchecked) package internal(set) var durableRevision: Int64
    /// The newest revision on stable storage that changed an entry.
    @exclusivity(unchecked) package internal(set) var lastChangeRevision: Int64 = 0
    /// From here on the history has every commit.
    @exclusivity(unchecked) package internal(set) var compactedRevision: Int64 = 0
    /// Whether what was can be read.
    @exclusivity(unchecked) package internal(set) var hasHistory = false
    /// Where changes have no storage: no revision above it may be taken, and from where on it is to be raised.
    @exclusivity(unchecked) var revisionCeiling = Int64.max
    @exclusivity(unchecked) var raisingRevision = Int64.max
    @exclusivity(unchecked) var ceiling: RevisionCeiling?

    // The rules.
    /// What the configuration says of keys; see ``exchange(rules:)``.
    @exclusivity(unchecked) package internal(set) var rules: KeyRules?
    /// Whether there are, or were, keys that no storage keeps beside those that it does.
    @exclusivity(unchecked) var keepsSomeInMemory = false
    /// The keys that are in memory, or were in this life.
    @exclusivity(unchecked) var volatilePatterns: [Pattern] = []
    /// What the open transaction has taken of the writes that somebody may make in a second.
    @exclusivity(unchecked) var openRates: [(rate: WriteRate, uid: UInt32)] = []
    /// Which keys former lives kept in memory, and up to which revision that may have been told.
    @exclusivity(unchecked) var forgotten: [ForgottenKeys] = []
    /// The last commit that changed a key in memory: the history does not have all that came up to it.
    @exclusivity(unchecked) var lastVolatileRevision: Int64 = 0
    /// What the last exchange of the rules has moved, until it is durable.
    @exclusivity(unchecked) var lastMove: Move?
    /// What nothing undoes of the transactions before a commit whose outcome is unknown, until the store is open again.
    let toldInDoubt = CommitBatch()
    /// Whether some rule limits how many keys or bytes there are.
    @exclusivity(unchecked) var countsUsage = false
    @exclusivity(unchecked) package internal(set) var deadlines = Deadlines()
    /// Milliseconds of CLOCK_BOOTTIME, which deadlines run on; a test may have another.
    @exclusivity(unchecked) package var clock: @Sendable () -> Int64 = { Deadlines.now() }
    /// Whether storage has entries that expire, perhaps superseded ones only.
    @exclusivity(unchecked) var hasLoadedExpiry = false
    /// What is to be logged of limits that are only said.
    @exclusivity(unchecked) package var notices: [String] = []

    // The open transaction; a revision of 0 where none is.
    @exclusivity(unchecked) package internal(set) var openRevision: Int64 = 0
    @exclusivity(unchecked) var openTime: Int64 = 0
    /// Who has to be allowed what it does; nil where everything is.
    @exclusivity(unchecked) var openSubject: Subject?
    /// The last thing that was refused to somebody, until who logs it has taken it.
    @exclusivity(unchecked) package var lastDenial: AccessDenial?
    /// Its session holds it, which outlives the transaction.
    @exclusivity(unchecked) var openCause: Unmanaged<InternedCause>?
    /// Nil where a change was taken back by a later one of the same transaction.
    @exclusivity(unchecked) var openChanges: [Record?] = []
    @exclusivity(unchecked) var openByteCount = 0
    /// The most that the rules of its keys ask for.
    @exclusivity(unchecked) var openDurability = Durability.memory

    /// Whether the open transaction has changed anything so far.
    package var hasOpenChanges: Bool { openChanges.contains { $0 != nil } }

    // Notes, the open transaction's among them.
    @exclusivity(unchecked) var notes: [String: NoteVersion] = [:]
    @exclusivity(unchecked) var openNotes: [Note] = []
    /// Whether there is somebody to keep them; set before anything is written.
    @exclusivity(unchecked) var keepsNotes = true

    // Finished transactions.
    /// What is not handed to the commit thread yet.
    let filling = CommitBatch()
    /// Bytes of all versions that were put, whatever has become of them.
    @exclusivity(unchecked) package internal(set) var putByteCount: Int64 = 0
    /// Bytes of all that is finished and not durable.
    @exclusivity(unchecked) package internal(set) var uncommittedByteCount = 0

    /// Why nothing may be written for now; nil where it may.
    @exclusivity(unchecked) package internal(set) var refusal: StateError?
    /// Why no key is set that is stored, though keys are deleted; nil while they are.
    @exclusivity(unchecked) package internal(set) var shortage: StateError?
    /// Why no value is set that takes more memory; nil while there is some.
    @exclusivity(unchecked) package var memoryShortage: StateError?
    /// Why nothing will be written any more.
    @exclusivity(unchecked) var closure: StateError?

    /// The backing where others may change what it holds; set before anything is written.
    @exclusivity(unchecked) var editable: (any EditableBacking)?

    /// The directories of the keys that live in files, where some do; set before anything is written.
    @exclusivity(unchecked) package internal(set) var files: FileContainers?
    /// Whether the open transaction is what others did to files, and whose the file of its next change is.
    @exclusivity(unchecked) var isAdoptingFiles = false
    @exclusivity(unchecked) var openOwner: UInt32?

    package let hub = WatchHub()
    /// What the commits since the last look will take to be published, in nanoseconds; see ``takePublishingCost()``.
    @exclusivity(unchecked) var publishingCost: Int64 = 0
    /// The listings that are made in slices.
    @exclusivity(unchecked) var scans: [ScanPosition] = []

    /// A caller's answer, once what it stands on is durable.
    struct Answer {
        var revision: Int64
        var result: Result<Int64, StateError>
        var completion: @Sendable (Result<Int64, StateError>) -> Void
        /// What was asked, where it may have to be done again.
        var mutations: [Mutation] = []
    }

    /// What is to be handed out once the lock is given up, and whether somebody is at it.
    @exclusivity(unchecked) var deliveries: [Delivery] = []
    @exclusivity(unchecked) var isDelivering = false

    /// Answers that wait, in order of revision.
    @exclusivity(unchecked) var waiters: [Answer] = []

    init(epoch: Epoch, revision: Int64, isPersistent: Bool, limits: Limits) {
        self.epoch = epoch
        self.newestRevision = revision
        self.provisionalRevision = revision
        self.durableRevision = revision
        self.isPersistent = isPersistent
        self.limits = limits
        table = EntryTable(keepsDeleted: isPersistent)
    }

    deinit {
        table.deallocateAll()
        pool.drain()
    }

    // MARK: Reading

    /// The newest version of `key`; nil if it is absent or has expired.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package func read(_ key: Bytes, _ receipt: inout Receipt) -> Record? {
        guard let head = table.head(key) else { return nil }
        // What the open transaction did itself is as certain as it.
        if head.revision > durableRevision, head.revision != openRevision, !head.isTold {
            receipt.noteRead(head.revision)
        }
        return head.isDeleted || isDue(head) ? nil : head
    }

    /// The newest version of `key`, expired or not; nil if it is absent.
    ///
    /// For the keyspace's own use: no answer may depend on it.
    func peek(_ key: Bytes) -> Record? {
        guard let head = table.head(key), !head.isDeleted else { return nil }
        return head
    }

    /// The version of `key` that is on stable storage; nil where it is absent there.
    package func readDurable(_ key: Bytes) -> Record? {
        guard let version = table.head(key)?.version(at: durableRevision), !version.isDeleted else {
            return nil
        }
        return version
    }

    /// Where the newest change of `key` that is on stable storage stands in the history; nil where none is known.
    package func durablePlace(of key: Bytes) -> HistoryPlace? {
        if let version = table.head(key)?.version(at: durableRevision), !version.isVolatile {
            return version.place
        }
        return table.deleted.record(for: key).map(\.place)
    }

    /// Notes that everything was looked at.
    package func observeAll(_ receipt: inout Receipt) {
        if provisionalRevision > durableRevision { receipt.noteRead(provisionalRevision) }
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
        patterns.forEach(in: table.live, after: bound) { [durableRevision] head in
            guard let version = head.version(at: durableRevision), !version.isDeleted else {
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
        patterns.forEach(in: table.live, after: bound, comparing: byteCount) {
            [durableRevision] head in
            guard let version = head.version(at: durableRevision), !version.isDeleted else {
                return true
            }
            return body(version)
        }
    }

    /// Calls `body` for the newest versions that are not on stable storage yet, deletes among them, in key order.
    package func forEachProvisional(_ patterns: PatternSet, _ body: (Record) -> Void) {
        patterns.forEach(in: table.live, after: nil) { [durableRevision] head in
            if head.revision > durableRevision { body(head) }
            return true
        }
    }

    /// Who wrote the newest version of `key`; nil if it is absent.
    package func newestCause(of key: Bytes) -> Cause? { peek(key).map { cause(of: $0) } }

    /// Who wrote a version.
    package func cause(of record: Record) -> Cause { causes[record.cause].cause }

    /// The same, as ``Cause/description`` in UTF-8.
    package func causeBytes(of record: Record) -> [UInt8] { causes[record.cause].bytes }

    // MARK: Causes

    /// A cause for a session's transactions, kept until `release`.
    package func retainCause(_ cause: Cause) -> InternedCause { causes.intern(cause) }

    package func release(_ cause: InternedCause) { causes.release(cause) }
}
