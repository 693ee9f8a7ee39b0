extension KeyspaceCore {
    /// Makes an answer wait until storage has everything written so far, by anybody.
    ///
    /// Takes a revision without a change if storage may have some of it later.
    ///
    /// - Throws: ``StateError/Code/readOnly`` while the store is reopened or revisions are not
    ///   reserved.
    package func storeEverything(
        _ receipt: inout Receipt,
        _ cause: InternedCause
    ) throws(StateError) {
        observeAll(&receipt)
        let newest = max(revisions.provisional, revisions.durable)
        // If the newest is a barrier, the answer waits for that.
        guard revisions.stored < newest, newest != revisions.barrier, memoryKeys.publishEarly else {
            return
        }
        try admission.refusals.check(isVolatile: false)
        try revisions.checkReserved(revisions.next)
        revisions.takeBarrier()
        pending.filling.appendBarrier(revision: revisions.newest, cause: .passUnretained(cause))
        receipt.noteCommit(revisions.newest)
    }
}
