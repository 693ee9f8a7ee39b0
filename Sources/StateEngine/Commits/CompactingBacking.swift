/// A backing that removes superseded changes from its history.
///
/// All of it is called between commits, by the thread that calls ``Backing/commit(_:)``.
package protocol CompactingBacking: HistoryBacking {
    /// Whether it has news: something was removed, or can be, that ``compact(while:)`` tells of.
    ///
    /// Asked after each commit.
    var hasCompactionNews: Bool { get }

    /// Why only deletes can be committed; nil if everything can.
    var shortage: StateError? { get }

    /// Checks whether there is room again.
    func lookForRoom()

    /// Sets what rules keep of the history; nil if they leave it to the retention.
    ///
    /// Any thread may set it. What earlier rules did not keep does not come back.
    func keep(by rules: HistoryRules?)

    /// Compacts everything up to `revision`, beyond the retention, and leaves nothing superseded.
    func raiseCompaction(to revision: Int64)

    /// Compacts a piece, or waits a little for the thread that does.
    ///
    /// - Parameter goesOn: Asked often; if it returns false, the piece ends within a fraction of a
    ///   millisecond.
    /// - Returns: What was done, and whether anything is left.
    /// - Throws: ``StateError``; the history is unchanged. If the message begins with `outcome
    ///   unknown`, the store must be reopened.
    func compact(while goesOn: () -> Bool) throws(StateError) -> CompactionStep

    /// Settles and removes nothing for the next minute, because a backup reads the store.
    ///
    /// Any thread may call it. A transaction that is under way is finished.
    func pauseCompaction()

    /// Ends the pause: no backup reads the history any more.
    func resumeCompaction()

    /// Rises before and after each time that changes may be removed from the history: it is odd
    /// meanwhile.
    ///
    /// May be read on any thread.
    var removalCount: Int { get }

    /// Makes sure that the compaction survives a power cut.
    func syncCompaction() throws(StateError)

    /// Gives free pages back to the file system; commits wait until it has ended.
    ///
    /// - Returns: By how many bytes the files became smaller.
    /// - Throws: ``StateError``; perhaps some of it was done.
    func shrink() throws(StateError) -> Int64
}

extension CompactingBacking {
    /// Does nothing: the history has no rules.
    package func keep(by rules: HistoryRules?) {}

    /// Does nothing: nothing is backed up.
    package func pauseCompaction() {}

    /// Nothing is backed up.
    package func resumeCompaction() {}

    /// Nothing is backed up.
    package var removalCount: Int { 0 }
}

/// What a piece of compaction did.
package struct CompactionStep: Sendable {
    /// A delete that left the history.
    package struct CompactedDelete: Hashable, Sendable {
        package var key: [UInt8]
        package var revision: Int64

        package init(key: [UInt8], revision: Int64) {
            self.key = key
            self.revision = revision
        }
    }

    /// From this revision on the history is complete.
    package var compacted: Int64
    /// Deletes that left the history and that nothing had superseded.
    package var tombstones: [CompactedDelete] = []
    /// Whether nothing is left to do for now.
    package var isDone = true

    package init(compacted: Int64) { self.compacted = compacted }
}

/// A request for compaction.
package struct CompactionRequest: Sendable {
    /// The history is needed from this revision on only; nil: from the revision that the retention
    /// gives.
    package var revision: Int64?
    /// Whether free pages are given back to the file system afterwards.
    package var shrinks: Bool
    /// Called once, when answers are delivered.
    package var completion: @Sendable (Result<CompactionReply, StateError>) -> Void
}

/// The result of a request.
package struct CompactionReply: Hashable, Sendable {
    /// From this revision on the history is complete.
    package var compacted: Int64
    /// Bytes that were given back; nil if nobody asked for it.
    package var freedByteCount: Int64?
}
