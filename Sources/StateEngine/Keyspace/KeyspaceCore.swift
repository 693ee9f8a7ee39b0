/// The state of a keyspace: entries, revisions, the open transaction, and finished transactions
/// that wait to be committed.
///
/// It has no lock of its own: every access is under the lock of its ``LocalKeyspace``, which is the
/// proof of `@unchecked Sendable`. That, and that no method calls out while it changes a field, is
/// also the proof of `@exclusivity(unchecked)`: the checks were 14 % of the instructions of a SET
/// (callgrind). Reading is here; writing is in `KeyspaceCore+Writing`, and the effects of a
/// commit's outcome in `KeyspaceCore+Settling`.
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

    // MARK: Reading

    /// The newest version of `key`; nil if it is absent or has expired.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package func read(_ key: Bytes, _ receipt: inout Receipt) -> Record? {
        guard let head = entries.head(key) else { return nil }
        // A read of the open transaction's own changes depends on nothing else.
        if head.revision > revisions.durable, head.revision != transaction.revision,
            !head.isPublished
        {
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

    /// The version of `key` that is on stable storage; nil if it is absent there.
    package func readDurable(_ key: Bytes) -> Record? {
        guard let version = entries.head(key)?.version(at: revisions.durable), !version.isDeleted
        else {
            return nil
        }
        return version
    }

    /// The place in the history of the newest durable change of `key`; nil if none is known.
    package func durablePlace(of key: Bytes) -> HistoryPlace? {
        if let version = entries.head(key)?.version(at: revisions.durable), !version.isVolatile {
            return version.place
        }
        return entries.deleted.record(for: key).map(\.place)
    }

    /// Records in the receipt that everything was read.
    package func observeAll(_ receipt: inout Receipt) {
        if revisions.provisional > revisions.durable { receipt.noteRead(revisions.provisional) }
    }

    /// Calls `body` for the durable versions of the entries that match one of `patterns`, in key
    /// order, until it returns false.
    ///
    /// - Parameters:
    ///   - patterns: Each entry is passed once, however many of them match it.
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

    /// The same, but compares at most about `byteCount` bytes of keys with patterns.
    ///
    /// - Returns: The last key that was compared, if there may be more; nil if all were compared,
    ///   or `body` returned false.
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

    /// Calls `body` for the newest versions that are not on stable storage yet, including deletes,
    /// in key order.
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

/// The properties of a keyspace's store.
package struct StoreTraits: Sendable {
    /// Its identity; constant once it is loaded.
    package internal(set) var epoch: Epoch
    /// Whether commits go to storage before they are reported.
    package let isPersistent: Bool
    /// Whether earlier states can be read.
    let hasHistory: Bool
}
