/// The work under the keyspace's lock: while the history is read, and with the result.
extension PastState {
    /// Keeps the version that the first change of a key since the start supersedes.
    func note(_ changes: [Record], _ core: KeyspaceCore) {
        guard meanwhileByteCount <= request.byteLimit else { return }
        let visibility = core.visibility(of: request.subject)
        for change in changes where isMeant(change.key) {
            // Versions in memory are not in the history.
            let older = change.older.flatMap { $0.isVolatile ? nil : $0 }
            if change.isVolatile, older == nil { continue }
            let key = Array(change.key)
            guard changedMeanwhile[key] == nil else { continue }
            let version = older.flatMap { older in
                visibility.mayReveal(.read, about: older) ? PastVersion(older, in: core) : nil
            }
            meanwhileByteCount +=
                key.count + (version?.value.count ?? 0) + PastVersion.overheadByteCount
            changedMeanwhile[key] = .some(version)
        }
        // The request fails; nobody needs them.
        if meanwhileByteCount > request.byteLimit { changedMeanwhile = [:] }
    }

    /// Stops tracking changes: the reading has ended, or nobody waits for it any more.
    package func endTracking(in core: KeyspaceCore) {
        subscription?.end(in: core)
        subscription = nil
    }

    /// The keys that have changed since the revision, with their versions at the revision, in key
    /// order.
    ///
    /// - Throws: ``StateError/Code/tooBig`` if too much has changed while the history was read.
    package func allChanged() throws(StateError) -> [Changed] {
        guard meanwhileByteCount <= request.byteLimit else {
            throw tooBig("the values that have changed meanwhile and")
        }
        var all = changed
        for (key, version) in changedMeanwhile where !isKnown(key) {
            all.append(Changed(key: key, place: nil, version: version))
        }
        if all.count > changed.count {
            all.sort { $0.key.precedes($1.key) }
        }
        return all
    }

    /// The keys whose newest version may differ from that at the revision, with their versions at
    /// the revision, in key order: keys that have changed since, and keys with a change that is not
    /// durable yet.
    ///
    /// - Throws: as ``allChanged()``.
    /// - Complexity: O(*m*) in the entries below the patterns' literal parts, if any change is not
    ///   durable yet.
    package func allThatMayDiffer(in core: KeyspaceCore) throws(StateError) -> [Changed] {
        var all = try allChanged()
        guard core.revisions.provisional > core.revisions.durable else { return all }
        let changedCount = all.count
        core.forEachProvisional(request.patterns) { head in
            let key = Array(head.key)
            guard !head.isVolatile, !isKnown(key), changedMeanwhile[key] == nil else { return }
            let durable = head.version(at: core.revisions.durable)
            let version = durable.flatMap { PastVersion($0, in: core) }
            all.append(Changed(key: key, place: nil, version: version))
        }
        if all.count > changedCount { all.sort { $0.key.precedes($1.key) } }
        return all
    }

    /// Whether the history had the version of a key, or it is not requested.
    private func isKnown(_ key: [UInt8]) -> Bool {
        if let lastKey, lastKey.precedes(key) {
            return true
        }
        var low = 0
        var high = changed.count
        while low < high {
            let middle = (low + high) / 2
            let order = changed[middle].key.order(to: key)
            if order == 0 { return true }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return false
    }

    /// Passes a piece of the state at the revision, in key order: the entries after `bound`, until
    /// `body` returns false.
    ///
    /// The state does not change between pieces, as long as changes are tracked.
    ///
    /// - Parameters:
    ///   - core: The keyspace, whose lock is held.
    ///   - bound: Only keys after this one; nil for the first piece.
    ///   - byteCount: About how many bytes of keys are compared with patterns at most.
    ///   - body: Takes a key and its version; returns whether it takes more.
    /// - Returns: The key up to which everything was passed; nil if that was all.
    /// - Throws: as ``allChanged()``.
    /// - Complexity: O(*m*) in the entries that are compared and the keys that have changed.
    package func forEach(
        in core: KeyspaceCore,
        after bound: [UInt8]?,
        comparing byteCount: Int,
        _ body: (_ key: Bytes, _ version: Version) -> Bool
    ) throws(StateError) -> [UInt8]? {
        let changed = try allChanged()
        let bound = bound ?? request.after
        var index = bound.map { PastState.firstIndex(in: changed, after: $0) } ?? 0
        var stop: [UInt8]?
        func pass(_ key: Bytes, _ version: Version) {
            if !body(key, version) { stop = Array(key) }
        }
        /// Passes those up to `key`, and returns whether `key` is one of them.
        func deliverChanged(upTo key: Bytes?) -> Bool {
            while stop == nil, index < changed.count {
                let entry = changed[index]
                let order = key.map { key in entry.key.withUnsafeBytes { $0.order(to: key) } } ?? -1
                guard order <= 0 else { return false }
                index += 1
                if let version = entry.version {
                    entry.key.withUnsafeBytes { pass($0, .past(version)) }
                }
                if order == 0 { return true }
            }
            return false
        }
        let visibility = core.visibility(of: request.subject)
        func look(_ after: Bytes?) -> [UInt8]? {
            core.forEachDurable(request.patterns, after: after, comparing: byteCount) { record in
                let isChanged = deliverChanged(upTo: record.key)
                if let lastKey, lastKey.withUnsafeBytes({ $0.precedes(record.key) }) {
                    return false
                }
                if stop == nil, !isChanged, !record.isVolatile,
                    visibility.mayReveal(.read, about: record)
                {
                    pass(record.key, .present(record))
                }
                return stop == nil
            }
        }
        let end = if let bound { bound.withUnsafeBytes { look($0) } } else { look(nil) }
        if let end {
            _ = end.withUnsafeBytes { deliverChanged(upTo: $0) }
        } else {
            _ = deliverChanged(upTo: nil)
        }
        return stop ?? end
    }

    /// The index of the first of `changed` after a key.
    private static func firstIndex(in changed: [Changed], after key: [UInt8]) -> Int {
        var (low, high) = (0, changed.count)
        while low < high {
            let middle = (low + high) / 2
            if changed[middle].key.order(to: key) <= 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The version of a key at the revision.
    package enum Version {
        /// It has not changed since.
        case present(Record)
        case past(PastVersion)
    }
}

extension [UInt8] {
    /// Whether these bytes come before `other` in byte order.
    func precedes(_ other: [UInt8]) -> Bool { order(to: other) < 0 }

    fileprivate func order(to other: [UInt8]) -> Int {
        withUnsafeBytes { mine in other.withUnsafeBytes { mine.order(to: $0) } }
    }
}
