import CLinux

/// The state of a keyspace: entries, revisions, the open transaction, and finished transactions
/// that wait to be committed.
///
/// It has no lock of its own: every access is under the lock of its ``LocalKeyspace``, which is the
/// proof of `@unchecked Sendable`. That, and that no method calls out while it changes a field, is
/// also the proof of `@exclusivity(unchecked)`: the checks were 14 % of the instructions of a SET
/// (callgrind). Writing is in `KeyspaceCore+Writing`, what a failed commit undoes in
/// `KeyspaceCore+Undoing`.
@usableFromInline
package final class KeyspaceCore: @unchecked Sendable {
    @exclusivity(unchecked) package internal(set) var store: StoreTraits
    @exclusivity(unchecked) package var entries: EntryStore
    @exclusivity(unchecked) package internal(set) var revisions: RevisionClock
    @exclusivity(unchecked) @usableFromInline package var admission: WriteAdmission
    @exclusivity(unchecked) var memoryKeys = MemoryKeys()
    @exclusivity(unchecked) package internal(set) var transaction = OpenTransaction()
    @exclusivity(unchecked) package internal(set) var pending = PendingCommits()
    @exclusivity(unchecked) var metadata = MetadataTable()
    /// Gets what rules keep of the history; nil if there is none.
    var compacting: (any CompactingBacking)?
    package let hub = WatchHub()

    init(_ store: StoreTraits, limits: Limits) {
        self.store = store
        revisions = RevisionClock(0)
        admission = WriteAdmission(limits)
        entries = EntryStore(keepsDeleted: store.isPersistent)
    }

    deinit {
        entries.deallocateAll()
    }

    package var epoch: Epoch { store.epoch }

    package var isPersistent: Bool { store.isPersistent }

    /// The configured rules of keys; nil if there are none.
    @inlinable package var rules: KeyRules? { admission.rules }

    /// The directories of the keys that live in files; nil if none do.
    @inlinable package var files: FileContainers? { admission.files }

    /// The subject itself if the rules may restrict it; nil if it may do everything.
    package func restriction(of subject: Subject) -> Subject? {
        guard !subject.isPrivileged, let rules, rules.limitsAccess else { return nil }
        return subject
    }

    // MARK: Reading

    /// The newest version of `key`; nil if it is absent or has expired.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package func read(_ key: Bytes, _ receipt: inout Receipt) -> Record? {
        let newest = entries.head(key)
        if transaction.cluster != nil { noteRead(of: key, newest) }
        guard let head = newest else { return nil }
        // A read of the open transaction's own changes depends on nothing else.
        if head.revision > revisions.durable, head.revision != transaction.revision {
            receipt.noteRead(head)
        }
        return head.isDeleted || isDue(head) ? nil : head
    }

    /// Whether the deadline of a version has passed: then it is absent for all readers, whether or
    /// not its delete is committed.
    ///
    /// Checks of access and quotas use the version until the delete is made.
    @inline(__always)
    package func isDue(_ record: Record) -> Bool {
        record.hasDeadline && record.deadline <= entries.clock()
    }

    /// The newest version of `key`, expired or not; nil if it is absent.
    ///
    /// For the keyspace's own use: no answer may depend on it.
    func peek(_ key: Bytes) -> Record? {
        guard let head = entries.head(key), !head.isDeleted else { return nil }
        return head
    }

    // MARK: Settling

    /// A batch is on stable storage: publishes it to watchers, then makes its changes durable.
    func settle(_ batch: CommitBatch) {
        // Order matters: superseded versions still exist while watchers receive the changes.
        if hub.count > 0 { hub.publish(batch, in: self) }
        let changes = batch.changes
        for (index, record) in changes.enumerated() {
            // A superseded version was last used long ago: waiting for it took 10 % of a SET in the
            // loop (perf).
            if index + 4 < changes.count, let soon = changes[index + 4].older {
                clinux_prefetch(soon.address)
            }
            if memoryKeys.areUsed { settleMove(record) }
            let older = record.older
            let wasLive = older.map { !$0.isDeleted } ?? false
            if let older {
                record.older = nil
                entries.free(older)
            }
            if record.isDeleted {
                if wasLive { entries.durableCount -= 1 }
                if entries.settleDelete(record) { entries.free(record) }
            } else if !wasLive {
                entries.durableCount += 1
            }
        }
        revisions.markDurable(batch.lastRevision, isStored: !batch.isDeferred)
        if let revision = batch.lastChangeRevision { revisions.noteChange(revision) }
        pending.byteCount -= batch.byteCount
        pending.fileSteps -= batch.fileSteps
    }

    // MARK: Causes

    /// A cause for a session's transactions, kept until `release`.
    package func retainCause(_ cause: Cause) -> InternedCause { entries.causes.intern(cause) }

    package func release(_ cause: InternedCause) { entries.causes.release(cause) }
}

/// The properties of a keyspace's store.
package struct StoreTraits: Sendable {
    /// Its identity; constant once it is loaded.
    package internal(set) var epoch: Epoch
    /// Whether commits go to storage before they are reported.
    package let isPersistent: Bool
    /// Whether earlier states can be read.
    let hasHistory: Bool
}

/// The revisions of a keyspace: stored ≤ durable ≤ provisional ≤ newest ≤ reserved.
///
/// Only the changes of keys with `durability: "interval"` are published before they are stored:
/// without them, stored and durable are equal.
///
/// If storage keeps the changes, it keeps their revisions with them. If not, revisions are reserved
/// in blocks, each written to a file before any of them is taken, so that no later process takes
/// one again.
package struct RevisionClock: ~Copyable {
    /// The newest revision that a transaction took, committed or not; revisions of failed ones are
    /// never used again.
    package private(set) var newest: Int64
    /// The newest revision that waits for storage; equal to `durable` if none does.
    package private(set) var provisional: Int64
    /// Everything up to this revision is published: on stable storage, unless its rule lets storage
    /// have it later.
    package private(set) var durable: Int64
    /// Everything up to this revision that storage keeps is on stable storage.
    package private(set) var stored: Int64
    /// What is published up to this revision is kept where the end of the process does not lose it.
    package private(set) var kept: Int64 = 0
    /// The newest revision that was taken to wait for everything before it.
    private(set) var barrier: Int64 = 0
    /// The newest durable revision that changed an entry.
    package private(set) var lastChange: Int64 = 0
    /// The history has every commit from this revision on.
    package private(set) var compacted: Int64 = 0

    /// No revision above this one may be taken.
    private var reserved = Int64.max
    /// A transaction that takes this revision triggers the reservation of the next block.
    private var reservingAt = Int64.max
    package private(set) var reservation: RevisionReservation?

    init(_ revision: Int64) {
        (newest, provisional, durable, stored) = (revision, revision, revision, revision)
    }

    /// The revision that the next transaction takes.
    package var next: Int64 { newest + 1 }

    /// A transaction has taken `revision` and waits for storage.
    mutating func take(_ revision: Int64) { (newest, provisional) = (revision, revision) }

    /// A revision is taken without a change, to wait for everything before it.
    mutating func takeBarrier() {
        take(next)
        barrier = newest
    }

    /// Everything up to `revision` is published; and on stable storage, if `isStored`.
    mutating func markDurable(_ revision: Int64, isStored: Bool = true) {
        if isStored { markStored(revision) }
        durable = max(durable, revision)
        provisional = max(provisional, durable)
        newest = max(newest, durable)
    }

    /// Everything up to `revision` is on stable storage.
    mutating func markStored(_ revision: Int64) { stored = max(stored, revision) }

    /// What is published up to `revision` is kept.
    mutating func markKept(_ revision: Int64) { kept = max(kept, revision) }

    /// A durable commit has changed an entry.
    mutating func noteChange(_ revision: Int64) { lastChange = max(lastChange, revision) }

    /// What waited for storage was undone.
    mutating func undo() { provisional = durable }

    /// A transaction that nothing undoes waits for storage again.
    mutating func keep(_ revision: Int64) { provisional = max(provisional, revision) }

    /// Storage was loaded up to `revision`, with a history from `compacted` on.
    mutating func load(_ revision: Int64, compacted: Int64) {
        (newest, provisional, durable, stored) = (revision, revision, revision, revision)
        self.compacted = compacted
    }

    /// The history begins at `revision` or later.
    mutating func compact(to revision: Int64) { compacted = max(compacted, revision) }

    /// The next revision is above `revision`.
    ///
    /// - Parameters:
    ///   - revision: A revision.
    ///   - isDecided: False while storage may have commits that memory has not.
    mutating func skip(to revision: Int64, isDecided: Bool = true) {
        newest = max(newest, revision)
        guard provisional <= durable, isDecided else { return }
        if stored == durable { stored = newest }
        (provisional, durable) = (newest, newest)
    }

    // MARK: Reserved revisions

    /// From now on revisions are reserved.
    mutating func reserve(in reservation: RevisionReservation) {
        self.reservation = reservation
        allow(through: reservation.status.reserved)
    }

    /// Revisions up to this one are reserved.
    mutating func allow(through revision: Int64) {
        guard let reservation else { return }
        reserved = revision
        reservingAt = revision - reservation.block / 2
    }

    /// Returns true if the next block must be reserved; once, until it is.
    mutating func takesReservation() -> Bool {
        guard newest >= reservingAt else { return false }
        reservingAt = .max
        return true
    }

    /// - Throws: ``StateError/Code/readOnly`` with the reason, if `revision` is not reserved yet.
    @inline(__always)
    func checkReserved(_ revision: Int64) throws(StateError) {
        if revision > reserved { throw notReserved(revision) }
    }

    private func notReserved(_ revision: Int64) -> StateError {
        guard let failure = reservation?.status.failure else {
            let path = reservation?.path ?? "nowhere"
            return StateError(
                .readOnly,
                "revision \(revision) is not reserved in \(path) yet: try again"
            )
        }
        return StateError(
            .readOnly,
            "\(failure.message); writes are refused until a retry succeeds"
        )
    }
}
