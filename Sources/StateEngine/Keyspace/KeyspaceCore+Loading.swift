/// The start: entries come from storage.
extension KeyspaceCore {
    /// Loads an entry from storage, before anybody else sees the core.
    ///
    /// - Complexity: O(*n*) in the bytes of key and value.
    func load(_ change: borrowing StoredChange) {
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
        if let superseded = entries.load(record) { entries.free(superseded) }
        if record.isDeleted, !entries.keepsDeleted { entries.free(record) }
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
