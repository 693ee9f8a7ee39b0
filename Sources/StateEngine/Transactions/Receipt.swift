/// What an answer depends on: it is sent once everything that it reports is on stable storage.
///
/// Whatever reads or writes a ``KeyspaceCore`` for an answer takes that answer's receipt and
/// records in it what was read. So no answer, be it a value or an error, can ignore what it depends
/// on. A receipt cannot be copied, and only ``KeyspaceCore/makeReceipt()`` makes one: the sender of
/// the answer calls it, once for each.
package struct Receipt: ~Copyable {
    /// The answer waits until this commit is on stable storage; 0 if it waits for none.
    package private(set) var revision: Int64 = 0
    /// The commit that the answer reports without waiting for it; 0 for none.
    package private(set) var reportedRevision: Int64 = 0
    /// Whether no failure of storage undoes what the answer waits for: then it waits only for
    /// watches to be sent first.
    package private(set) var isFinal = false

    init() {}

    /// What the answer to a write waits for.
    package enum Wait {
        /// Stable storage, whatever the rules of the keys require.
        case storage
        /// What the rules of the keys require.
        case rules
        /// Nothing: the client has asked not to wait for its own commit.
        case nothing
    }

    /// The answer depends on nothing that was read so far: it reports none of it, or its client
    /// wrote it.
    package mutating func waiveReads() { revision = 0 }

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
    mutating func noteCommit(_ revision: Int64, isFinal: Bool = false) {
        self.revision = max(self.revision, revision)
        self.isFinal = isFinal
    }

    /// The answer reports a commit and does not wait for it.
    mutating func noteReported(_ revision: Int64) { reportedRevision = revision }
}

extension KeyspaceCore {
    /// A receipt for one answer.
    package func makeReceipt() -> Receipt { Receipt() }
}
