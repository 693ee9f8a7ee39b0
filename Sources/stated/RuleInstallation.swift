import StateEngine
import StateRules
import StateServer

/// How the rules of a configuration come to hold in a keyspace.
struct RuleInstallation {
    let keyspace: LocalKeyspace
    /// Where the ceiling of revisions is, which no storage keeps.
    let dataDirectory: String
    let log: Log

    /// Makes ready what the rules need; waits for the disk, and changes nothing that holds.
    ///
    /// - Throws: ``StateError``, where the ceiling of revisions cannot be read or raised.
    func prepare(_ rules: RuleTable) throws(StateError) {
        guard keyspace.isPersistent else { return }
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
        } else if !keyspace.isBound {
            try ceiling.raise()
            keyspace.bound(by: ceiling)
        }
    }
}
