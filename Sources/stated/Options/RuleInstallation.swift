import StateEngine
import StateRules
import StateServer

/// How the rules of a configuration come to hold in a keyspace.
struct RuleInstallation {
    let keyspace: LocalKeyspace
    /// Where the ceiling of revisions is, which no storage keeps.
    let dataDirectory: String
    let log: Log

    /// Has the rules hold before anybody is served, and moves what lives elsewhere by them.
    ///
    /// - Throws: as ``prepare(_:)``; ``StateError/Code/err``, where more would move than a transaction may hold; or what the store
    ///   answered, with the keys where they were.
    func install(_ rules: RuleTable) throws(StateError) {
        try recall()
        try prepare(rules)
        do throws(StateError) {
            noteMoved(try keyspace.exchange(rules: rules.byKey))
        } catch {
            // It is the configuration that has to be changed then.
            throw error.code == .tooBig ? StateError(.err, error.message) : error
        }
    }

    /// Logs that keys have moved.
    func noteMoved(_ count: Int) {
        guard count > 0 else { return }
        let keys = count == 1 ? "1 key" : "\(count) keys"
        log.write(.notice, "\(keys) moved to the backing of their rule")
    }

    private var memoryKeys: MemoryKeysFile {
        MemoryKeysFile(path: dataDirectory + "/memory.patterns")
    }

    /// Whoever heard of keys in memory in former lives is told that they are gone, also where no rule says memory any more.
    private func recall() throws(StateError) {
        guard keyspace.isPersistent else { return }
        let last = try RevisionCeiling(path: dataDirectory + "/memory.revisions").floor
        let forgotten = try memoryKeys.beginLife(after: last) {
            log.write(.warning, "which keys were in memory stays noted as it was: \($0.message)")
        }
        keyspace.forget(forgotten)
    }

    /// Makes ready what the rules need; waits for the disk, and changes nothing that holds.
    ///
    /// - Throws: ``StateError``, where the ceiling of revisions cannot be read or raised, or what is in memory not noted.
    func prepare(_ rules: RuleTable) throws(StateError) {
        guard keyspace.isPersistent else { return }
        try bound(rules)
        try memoryKeys.add(rules.byKey.memoryPatterns)
    }

    private func bound(_ rules: RuleTable) throws(StateError) {
        guard !keyspace.isBound else { return }
        let ceiling = try RevisionCeiling(path: dataDirectory + "/memory.revisions") {
            [log] failure in
            if let failure {
                log.write(.warning, failure)
            } else {
                log.write(.notice, "the ceiling of revisions is raised again")
            }
        }
        if rules.byKey.memoryPatterns.isEmpty {
            // What an earlier life told of keys in memory stays below.
            if ceiling.floor > 0 { keyspace.skip(to: ceiling.floor + 1) }
        } else {
            // The store may be far above what was in memory until now.
            try ceiling.raise(above: keyspace.newestRevision)
            keyspace.bound(by: ceiling)
        }
    }
}
