import StateEngine
import StateRules
import StateServer

/// How the rules of a configuration come to hold in a keyspace.
struct RuleInstallation {
    let keyspace: LocalKeyspace
    /// Where the reserved revision is, which no storage keeps.
    let dataDirectory: String
    let log: Log

    /// Has the rules hold before anybody is served, and moves what lives elsewhere by them.
    ///
    /// - Throws: ``StateError``, if the reserved revisions cannot be read or raised, or what is in memory not noted;
    ///   ``StateError/Code/err``, if more would move than a transaction may hold; or what the store answered.
    func install(_ rules: RuleTable) throws(StateError) {
        try recall()
        if keyspace.isPersistent {
            try bound(rules)
            try memoryKeys.add(rules.byKey.memoryPatterns)
        }
        do throws(StateError) {
            noteMoved(try keyspace.install(rules: rules.byKey))
        } catch {
            // It is the configuration that has to be changed then.
            throw error.code == .tooBig ? StateError(.err, error.message) : error
        }
    }

    /// Logs that keys have moved.
    private func noteMoved(_ count: Int) {
        guard count > 0 else { return }
        log.write(.notice, "\(counted(count, "key")) moved to the backing of their rule")
    }

    private var memoryKeys: MemoryKeysFile {
        MemoryKeysFile(path: dataDirectory + "/memory.patterns")
    }

    /// Whoever heard of keys in memory in former lives is told that they are gone, also where no rule says memory any more.
    private func recall() throws(StateError) {
        guard keyspace.isPersistent else { return }
        let last = try RevisionReservation(path: dataDirectory + "/memory.revisions").floor
        let forgotten = try memoryKeys.beginLife(after: last) {
            log.write(.warning, "which keys were in memory stays noted as it was: \($0.message)")
        }
        keyspace.forget(forgotten)
    }

    private func bound(_ rules: RuleTable) throws(StateError) {
        let path = dataDirectory + "/memory.revisions"
        let reservation = try RevisionReservation(path: path, onFailure: log.writeCeiling)
        if rules.byKey.memoryPatterns.isEmpty {
            // What an earlier life told of keys in memory stays below.
            if reservation.floor > 0 { keyspace.skip(to: reservation.floor + 1) }
        } else {
            // The store may be far above what was in memory until now.
            try reservation.raise(above: keyspace.newestRevision)
            keyspace.bound(by: reservation)
        }
    }
}
