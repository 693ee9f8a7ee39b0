import StateEngine
import StateRules
import StateServer

/// Installs the rules of a configuration in a keyspace.
struct RuleInstallation {
    let keyspace: LocalKeyspace
    /// The directory of the reserved revision, which is not in the store.
    let dataDirectory: String
    let log: Log

    /// Installs the rules before clients are served, and moves keys to the storage that the rules
    /// name.
    ///
    /// - Throws: ``StateError``, if the reserved revision cannot be read or raised, or the list of
    ///   patterns in memory cannot be stored; ``StateError/Code/err``, if more keys would move than
    ///   fit in a transaction; or the error of the store.
    func install(_ rules: RuleTable, _ limits: ConfiguredLimits) throws(StateError) {
        try recall()
        limitDeferral(to: limits)
        if keyspace.isPersistent {
            try bound(rules)
            if !rules.byKey.deferredPatterns.isEmpty { keyspace.prepareToDefer() }
            try memoryKeys.add(rules.byKey.memoryPatterns, deferred: rules.byKey.deferredPatterns)
        }
        do throws(StateError) {
            logMoved(try keyspace.install(rules: rules.byKey))
        } catch {
            // The user has to change the configuration then.
            throw error.code == .tooBig ? StateError(.err, error.message) : error
        }
    }

    /// Prepares a reload, on a thread that may wait for the disk: records which keys storage may
    /// have later, and reserves revisions, because some are not stored.
    ///
    /// - Throws: The error of the file or of the reservation; the rules must not be used then.
    func prepare(_ rules: RuleTable) throws(StateError) {
        guard keyspace.isPersistent, !rules.byKey.deferredPatterns.isEmpty else { return }
        if keyspace.withCore({ $0.revisions.reservation == nil }) { try bound(rules) }
        keyspace.prepareToDefer()
        try memoryKeys.add([], deferred: rules.byKey.deferredPatterns)
    }

    /// Bounds what is published and not stored.
    func limitDeferral(to limits: ConfiguredLimits) {
        keyspace.setDeferredByteLimit(limits[.deferredBytes])
    }

    /// Logs that keys have moved.
    private func logMoved(_ count: Int) {
        guard count > 0 else { return }
        log.write(
            .notice,
            .keysMoved,
            "\(counted(count, "key")) moved to the storage that the rules name"
        )
    }

    private var memoryKeys: MemoryKeysFile {
        MemoryKeysFile(path: dataDirectory + "/memory.patterns")
    }

    /// Records, once the keyspace is closed, whether storage has everything that was published.
    func end() {
        guard keyspace.isPersistent else { return }
        let lost = keyspace.deferred.count
        guard lost == 0 else {
            let count = counted(lost, "change")
            let fate =
                keyspace.keepsRest
                ? "\(count) with durability interval could not be synced until the end: the next start "
                    + "finds them, unless the machine starts anew before"
                : "\(count) with durability interval could not be stored until the end: those that are "
                    + "not in the log are lost"
            log.write(.error, .deferralLost, fate)
            return
        }
        do throws(StateError) { try memoryKeys.endLife() } catch {
            log.write(
                .warning,
                .patternsNotUpdated,
                "the list of key patterns in memory cannot be updated: \(error.message)"
            )
        }
    }

    /// Deletes the keys that were in memory before the restart, so that watches see that they are
    /// gone; also if no rule has `backing: "memory"` any more.
    private func recall() throws(StateError) {
        guard keyspace.isPersistent else { return }
        let last = try RevisionReservation(path: dataDirectory + "/memory.revisions").floor
        let stored = keyspace.newestRevision
        let forgotten = try memoryKeys.beginLife(
            after: last,
            storedThrough: stored,
            hasAllDeferred: keyspace.hasAllDeferred
        ) {
            log.write(
                .warning,
                .patternsNotUpdated,
                "the list of key patterns in memory cannot be updated: \($0.message)"
            )
        }
        keyspace.forget(forgotten)
    }

    private func bound(_ rules: RuleTable) throws(StateError) {
        let path = dataDirectory + "/memory.revisions"
        let reservation = try RevisionReservation(path: path, onFailure: log.writeReservation)
        if rules.byKey.memoryPatterns.isEmpty, rules.byKey.deferredPatterns.isEmpty {
            // New revisions must be above those published for keys in memory before the restart.
            if reservation.floor > 0 { keyspace.skip(to: reservation.floor + 1) }
        } else {
            // The store may be far above the revisions reserved until now.
            try reservation.raise(above: keyspace.newestRevision)
            keyspace.bound(by: reservation)
        }
    }
}
