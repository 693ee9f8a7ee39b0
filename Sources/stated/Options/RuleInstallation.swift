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
    func install(_ rules: RuleTable) throws(StateError) {
        try recall()
        if keyspace.isPersistent {
            try bound(rules)
            try memoryKeys.add(rules.byKey.memoryPatterns)
        }
        do throws(StateError) {
            logMoved(try keyspace.install(rules: rules.byKey))
        } catch {
            // The user has to change the configuration then.
            throw error.code == .tooBig ? StateError(.err, error.message) : error
        }
    }

    /// Logs that keys have moved.
    private func logMoved(_ count: Int) {
        guard count > 0 else { return }
        log.write(.notice, "\(counted(count, "key")) moved to the storage that the rules name")
    }

    private var memoryKeys: MemoryKeysFile {
        MemoryKeysFile(path: dataDirectory + "/memory.patterns")
    }

    /// Deletes the keys that were in memory before the restart, so that watches see that they are
    /// gone; also if no rule has `backing: "memory"` any more.
    private func recall() throws(StateError) {
        guard keyspace.isPersistent else { return }
        let last = try RevisionReservation(path: dataDirectory + "/memory.revisions").floor
        let forgotten = try memoryKeys.beginLife(after: last) {
            log.write(
                .warning,
                "the list of key patterns in memory cannot be updated: \($0.message)"
            )
        }
        keyspace.forget(forgotten)
    }

    private func bound(_ rules: RuleTable) throws(StateError) {
        let path = dataDirectory + "/memory.revisions"
        let reservation = try RevisionReservation(path: path, onFailure: log.writeReservation)
        if rules.byKey.memoryPatterns.isEmpty {
            // New revisions must be above those published for keys in memory before the restart.
            if reservation.floor > 0 { keyspace.skip(to: reservation.floor + 1) }
        } else {
            // The store may be far above the revisions reserved until now.
            try reservation.raise(above: keyspace.newestRevision)
            keyspace.bound(by: reservation)
        }
    }
}
