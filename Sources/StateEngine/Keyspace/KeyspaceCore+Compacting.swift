/// Removes compacted changes from memory.
extension KeyspaceCore {
    /// The number of tombstones in memory: keys whose newest change is a durable delete.
    package var rememberedDeleteCount: Int { entries.deleted.count }

    /// Tombstones that left the history are not needed any more.
    func takeOver(_ step: CompactionStep) {
        revisions.compact(to: step.compacted)
        for tombstone in step.tombstones {
            let forgotten = tombstone.key.withUnsafeBytes {
                entries.forgetDelete(of: $0, at: tombstone.revision)
            }
            if let forgotten { entries.free(forgotten) }
        }
    }
}

extension LocalKeyspace {
    /// What compacts the history; nil if nothing does.
    package var compaction: (any CompactingBacking)? { queue.capabilities.compaction }

    /// Compacts the history.
    ///
    /// It runs in pieces between commits; with `shrinks`, commits wait until it has ended.
    ///
    /// - Parameters:
    ///   - revision: History is kept from this revision on; nil: from the revision that the
    ///     retention gives. Below the compacted revision there is nothing to do, which is not an
    ///     error.
    ///   - shrinks: Whether free pages are given back to the file system.
    ///   - core: The keyspace's state, whose lock is held.
    ///   - completion: Called once, when answers are delivered: in the daemon on the loop thread.
    /// - Throws: ``StateError/Code/invalidRequest`` if there is no history, or for a revision above the
    ///   current one.
    package func compact(
        to revision: Int64?,
        shrinks: Bool,
        in core: KeyspaceCore,
        _ completion: @escaping @Sendable (Result<CompactionReply, StateError>) -> Void
    ) throws(StateError) {
        guard queue.capabilities.compaction != nil else {
            throw StateError(.err, "values are kept in memory only: there is no history to compact")
        }
        let current = core.revisions.durable
        if let revision, revision > current {
            throw StateError(
                .err,
                "revision \(revision) is above the current revision \(current): "
                    + "nothing was compacted"
            )
        }
        let request = CompactionRequest(
            revision: revision,
            shrinks: shrinks,
            completion: completion
        )
        guard queue.submit(.compact(request)) else {
            throw StateError(.readOnly, "the keyspace is closed")
        }
    }
}
