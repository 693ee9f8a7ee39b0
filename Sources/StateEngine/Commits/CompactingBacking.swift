/// A backing that takes superseded changes out of its history, in pieces of a few milliseconds.
///
/// All of it is called where ``Backing/commit(_:)`` is: between commits.
package protocol CompactingBacking: HistoryBacking {
    /// What there is to do; asked after each commit.
    ///
    /// - Complexity: O(log *n*) in the history's length, without the disk.
    var compactionNeed: CompactionNeed { get }

    /// Why only deletes can be committed; nil if everything can.
    var shortage: StateError? { get }

    /// Looks whether there is room again.
    func lookForRoom()

    /// Has everything up to `revision` compacted, beyond what the retention says.
    func raiseCompaction(to revision: Int64)

    /// Does a piece of it, in one transaction.
    ///
    /// - Parameter goesOn: Asked often; where it says false, the piece ends within a fraction of a millisecond.
    /// - Returns: What was done, and whether anything is left.
    /// - Throws: ``StateError``; the history is as it was. Where the message begins with `outcome unknown` the store has to be
    ///   opened anew.
    func compact(while goesOn: () -> Bool) throws(StateError) -> CompactionStep

    /// Makes sure that what was compacted stays so after a power cut.
    func syncCompaction() throws(StateError)

    /// Gives free pages back to the file system; commits wait for the whole of it.
    ///
    /// - Returns: By how many bytes the files became smaller.
    /// - Throws: ``StateError/Code/noSpace`` where there is no room for a second copy of the values; nothing has changed.
    func shrink() throws(StateError) -> Int64
}

/// What there is to compact.
package struct CompactionNeed: Hashable, Sendable {
    /// It is worth a piece while there is nothing to commit.
    package var isWorthwhile = false
    /// There is anything at all.
    package var isAny = false
    /// So much that commits wait for a piece now and then.
    package var isDue = false
    /// So much that commits wait for it more than for each other.
    package var isUrgent = false

    package init() {}
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

    /// From this revision on the history is whole.
    package var compacted: Int64
    /// Deletes that left the history and that nothing had superseded.
    package var graves: [CompactedDelete] = []
    /// Whether nothing is left to do for now.
    package var isDone = true

    package init(compacted: Int64) { self.compacted = compacted }
}

/// What somebody asked for.
package struct CompactionRequest: Sendable {
    /// The history is wanted from here on only; nil: from where the retention says.
    package var revision: Int64?
    /// Whether free pages are given back to the file system afterwards.
    package var shrinks: Bool
    /// Called once, where answers are handed out.
    package var completion: @Sendable (Result<CompactionReply, StateError>) -> Void
}

/// What became of it.
package struct CompactionReply: Hashable, Sendable {
    /// From this revision on the history is whole.
    package var compacted: Int64
    /// Bytes that were given back; nil where nobody asked for it.
    package var freedByteCount: Int64?
}
