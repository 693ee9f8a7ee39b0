/// What an answer depends on: it is sent once everything that it reports is on stable storage.
///
/// Whatever reads or writes a ``KeyspaceCore`` for an answer takes that answer's receipt and
/// records in it what was read. So no answer, be it a value or an error, can ignore what it depends
/// on. A receipt cannot be copied, and only ``KeyspaceCore/makeReceipt()`` makes one: the sender of
/// the answer calls it, once for each.
@usableFromInline
package struct Receipt: ~Copyable {
    /// The answer waits until this commit is on stable storage; 0 if it waits for none.
    @usableFromInline package private(set) var revision: Int64 = 0
    /// The answer waits until this commit is kept, which storage may have later; 0 if none is in it.
    @usableFromInline package private(set) var published: Int64 = 0
    /// The commit that the answer reports without waiting for it; 0 for none.
    @usableFromInline package private(set) var reportedRevision: Int64 = 0
    /// Whether no failure of storage undoes what the answer waits for: then it waits only for
    /// watches to be sent first.
    @usableFromInline package private(set) var isFinal = false

    @inlinable init() {}

    /// What the answer to a write waits for.
    package enum Wait {
        /// Stable storage, unless the rules of all its keys let storage have them later.
        case storage
        /// What the rules of the keys require.
        case rules
        /// Nothing: the client has asked not to wait for its own commit.
        case nothing
    }

    /// The answer depends on nothing that was read so far: it reports none of it, or its client
    /// wrote it.
    package mutating func waiveReads() { (revision, published) = (0, 0) }

    /// A version was read that is not on stable storage yet.
    @inline(__always)
    mutating func noteRead(_ record: Record) {
        if !record.isPublished {
            noteRead(record.revision)
        } else if !record.isVolatile {
            notePublished(record.revision)
        }
    }

    /// The answer shows a commit that nobody undoes and that storage may have later.
    mutating func notePublished(_ revision: Int64) { published = max(published, revision) }

    /// A change was read whose commit is not on stable storage yet.
    @inline(__always)
    package mutating func noteRead(_ revision: Int64) {
        guard revision > self.revision else { return }
        self.revision = revision
        isFinal = false
    }

    /// The answer reports a commit and waits for it.
    ///
    /// - Parameters:
    ///   - revision: The commit's revision.
    ///   - isFinal: Whether nothing undoes it.
    package mutating func noteCommit(_ revision: Int64, isFinal: Bool = false) {
        self.revision = max(self.revision, revision)
        self.isFinal = isFinal
    }

    /// The answer reports a commit and does not wait for it.
    mutating func noteReported(_ revision: Int64) { reportedRevision = revision }
}

extension KeyspaceCore {
    /// A receipt for one answer.
    @inlinable package func makeReceipt() -> Receipt { Receipt() }
}
