/// The revisions of a keyspace: durable ≤ provisional ≤ newest ≤ reserved.
///
/// If storage keeps the changes, it keeps their revisions with them. If not, revisions are reserved
/// in blocks, each written to a file before any of them is taken, so that no later process takes
/// one again.
package struct RevisionClock: ~Copyable {
    /// The newest revision that a transaction took, committed or not; revisions of failed ones are
    /// never used again.
    package private(set) var newest: Int64
    /// The newest revision that waits for storage; equal to `durable` if none does.
    package private(set) var provisional: Int64
    /// Everything up to this revision is on stable storage.
    package private(set) var durable: Int64
    /// The newest durable revision that changed an entry.
    package private(set) var lastChange: Int64 = 0
    /// The history has every commit from this revision on.
    package private(set) var compacted: Int64 = 0

    /// No revision above this one may be taken.
    private var reserved = Int64.max
    /// A transaction that takes this revision triggers the reservation of the next block.
    private var reservingAt = Int64.max
    private(set) var reservation: RevisionReservation?

    init(_ revision: Int64) { (newest, provisional, durable) = (revision, revision, revision) }

    /// The revision that the next transaction takes.
    package var next: Int64 { newest + 1 }

    /// A transaction has taken `revision` and waits for storage.
    mutating func take(_ revision: Int64) { (newest, provisional) = (revision, revision) }

    /// Everything up to `revision` is on stable storage.
    mutating func markDurable(_ revision: Int64) {
        durable = max(durable, revision)
        provisional = max(provisional, durable)
        newest = max(newest, durable)
    }

    /// A durable commit has changed an entry.
    mutating func noteChange(_ revision: Int64) { lastChange = revision }

    /// What waited for storage was undone.
    mutating func undo() { provisional = durable }

    /// A transaction that nothing undoes waits for storage again.
    mutating func keep(_ revision: Int64) { provisional = max(provisional, revision) }

    /// Storage was loaded up to `revision`, with a history from `compacted` on.
    mutating func load(_ revision: Int64, compacted: Int64) {
        (newest, provisional, durable) = (revision, revision, revision)
        self.compacted = compacted
    }

    /// The history begins at `revision` or later.
    mutating func compact(to revision: Int64) { compacted = max(compacted, revision) }

    /// The next revision is above `revision`.
    mutating func skip(to revision: Int64) {
        newest = max(newest, revision)
        guard provisional <= durable else { return }
        (provisional, durable) = (newest, newest)
    }

    // MARK: Reserved revisions

    /// From now on revisions are reserved.
    mutating func reserve(in reservation: RevisionReservation) {
        self.reservation = reservation
        allow(through: reservation.status.reserved)
    }

    /// Revisions up to this one are reserved.
    mutating func allow(through revision: Int64) {
        guard let reservation else { return }
        reserved = revision
        reservingAt = revision - reservation.block / 2
    }

    /// Returns true if the next block must be reserved; once, until it is.
    mutating func takesReservation() -> Bool {
        guard newest >= reservingAt else { return false }
        reservingAt = .max
        return true
    }

    /// - Throws: ``StateError/Code/readOnly`` with the reason, if `revision` is not reserved yet.
    @inline(__always)
    func checkReserved(_ revision: Int64) throws(StateError) {
        if revision > reserved { throw notReserved(revision) }
    }

    private func notReserved(_ revision: Int64) -> StateError {
        guard let failure = reservation?.status.failure else {
            let path = reservation?.path ?? "nowhere"
            return StateError(
                .readOnly,
                "revision \(revision) is not reserved in \(path) yet: try again"
            )
        }
        return StateError(
            .readOnly,
            "\(failure.message); writes are refused until a retry succeeds"
        )
    }
}
