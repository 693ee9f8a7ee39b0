/// The start: entries come from storage.
extension KeyspaceCore {
    /// Loads an entry from storage, before anybody else sees the core.
    ///
    /// - Returns: The place of the change that it supersedes, if that was loaded before, and the
    ///   bytes of its value.
    /// - Complexity: O(*n*) in the bytes of key and value.
    func load(_ change: borrowing StoredChange) -> (place: HistoryPlace, byteCount: Int)? {
        let cause = entries.causes.intern(bytes: change.cause)
        var fields = Record.Fields(change, cause: cause.number)
        fields.isLoaded = true
        let record = Record.make(
            fields,
            key: change.key,
            value: change.value,
            in: &entries.pool
        )
        revisions.noteChange(change.revision)
        entries.hasLoadedExpiry = entries.hasLoadedExpiry || record.hasDeadline
        let superseded = entries.load(record)
        let found = superseded.map { record in
            (
                HistoryPlace(revision: record.revision, ordinal: record.ordinal),
                record.value?.count ?? 0
            )
        }
        if let superseded { entries.free(superseded) }
        if record.isDeleted, !entries.keepsDeleted { entries.free(record) }
        return found
    }

    /// Prepares for the next entries to be loaded.
    func lookAhead(_ changes: ArraySlice<StoredChange>) {
        withUnsafeTemporaryAllocation(of: Bytes.self, capacity: changes.count) { keys in
            _ = keys.initialize(from: changes.lazy.map(\.key))
            lookAhead(UnsafeBufferPointer(keys))
        }
    }

    /// Prepares for look-ups of these keys: they wait for memory together, not one after the other.
    package func lookAhead(_ keys: UnsafeBufferPointer<Bytes>) { entries.live.prefetch(keys) }

    /// Everything was loaded from storage.
    func finishLoading(_ store: LoadedStore) {
        self.store.epoch = store.epoch
        revisions.load(store.revision, compacted: store.compacted)
        metadata.load(store.metadata, at: store.revision)
        entries.durableCount = entries.live.count
        guard entries.hasLoadedExpiry else { return }
        let (now, wallTime) = (entries.clock(), entries.wallTime())
        entries.live.forEach(prefix: Bytes(start: nil, count: 0), after: nil) { record in
            entries.deadlines.insert(record, at: now, wallTime: wallTime)
            return true
        }
    }
}

extension LocalKeyspace {
    /// Loads everything that a backing has.
    static func load(
        _ backing: any Backing,
        into core: KeyspaceCore
    ) throws -> LoadedStore {
        guard let compacting = backing.capabilities.compaction else {
            return try backing.load { _ = core.load($0) }
        }
        return try compacting.load(lookingAhead: core.lookAhead) { change in
            guard let superseded = core.load(change) else { return }
            compacting.didLoad(superseding: superseded.place, byteCount: superseded.byteCount)
        }
    }
}
