/// What compaction takes out of memory.
extension KeyspaceCore {
    /// How many keys are known of which the newest change is a durable delete.
    package var rememberedDeleteCount: Int { entries.deleted.count }

    /// Deletes that left the history need not be remembered any more.
    func takeOver(_ step: CompactionStep) {
        revisions.compact(to: step.compacted)
        for grave in step.graves {
            let forgotten = grave.key.withUnsafeBytes {
                entries.forgetDelete(of: $0, at: grave.revision)
            }
            if let forgotten { entries.free(forgotten) }
        }
    }
}

extension LocalKeyspace {
    /// Compacts the history.
    ///
    /// It runs in pieces between commits; with `shrinks` commits wait for the end of it.
    ///
    /// - Parameters:
    ///   - revision: History is wanted from here on; nil: from where the retention says. Below the compacted revision
    ///     there is nothing to do, which is no error.
    ///   - shrinks: Whether free pages are given back to the file system.
    ///   - core: The keyspace's state, whose lock is held.
    ///   - completion: Called once, where answers are handed out: in the daemon on the loop thread.
    /// - Throws: ``StateError/Code/err`` where there is no history, or for a revision above the current one.
    package func compact(
        to revision: Int64?,
        shrinks: Bool,
        in core: KeyspaceCore,
        _ completion: @escaping @Sendable (Result<CompactionReply, StateError>) -> Void
    ) throws(StateError) {
        guard queue.capabilities.compaction != nil else {
            throw StateError(.err, "values in memory have no history that could be compacted")
        }
        let current = core.revisions.durable
        if let revision, revision > current {
            throw StateError(
                .err,
                "revision \(revision) is above the current one, \(current): nothing was compacted"
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
