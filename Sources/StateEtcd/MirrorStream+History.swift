/// Whether a member has the history that the daemon has.
extension MirrorStream {
    /// Why the member's history is not that of the position; nil if it is.
    ///
    /// A cluster that was restored from a snapshot has the same number, and takes a watch from a
    /// revision that it has not reached without a word.
    func difference() throws(LinkFailure) -> String? {
        let now = try etcd.range(beatKey, patience: EtcdClient.connectPatience)
        if position.history.isEmpty { return "for the first time" }
        if "\(now.header.clusterID)" != position.history { return "it is another cluster" }
        if now.header.revision < position.revision {
            return "etcd is at revision \(now.header.revision), before \(position.revision)"
        }
        if stamp.beat == "-" { return "etcd has nothing of this node at the position" }
        // Which keys these were, only a comparison shows.
        if stamp.refusedCount > 0 { return "some keys could not be copied before" }
        do throws(LinkFailure) {
            let then = try etcd.range(beatKey, revision: position.revision)
            let changes = try changes(at: position.revision)
            let beat = MirrorStamp.beat(then.entries.first)
            let isSame = beat == stamp.beat && changes == stamp.changes
            return isSame ? nil : "etcd was restored from a backup"
        } catch {
            guard case .cluster(let reason) = error, reason.contains("compacted") else {
                throw error
            }
            return "etcd has compacted its history beyond revision \(position.revision)"
        }
    }

    /// What was set at a revision, as ``MirrorStamp/changes``.
    func changes(at revision: Int64) throws(LinkFailure) -> UInt64 {
        let end = EtcdMessages.end(of: position.prefix)
        let found = try etcd.range(
            position.prefix,
            end: end,
            revision: revision,
            changedAt: revision
        )
        return MirrorStamp.changes(found.entries)
    }
}
