import StatePlatform

/// Keeps nothing: entries live as long as the process, and each start has a new epoch.
///
/// With a directory it keeps one thing there, the reserved revision, so that revisions do not
/// repeat: `memory.revisions`, under the `lock` of the directory's owner. A store in the same
/// directory is not touched.
///
/// `load` is first and once, and nothing else is changed after it: the proof of `@unchecked
/// Sendable`.
public final class MemoryBacking: Backing, @unchecked Sendable {
    private let directory: String?
    private let block: Int64
    /// Held from load to close.
    private var lock: OwnerLock?
    package private(set) var reservation: RevisionReservation?
    /// Called when the reservation cannot be raised; set before the load.
    package var onReservation: @Sendable (_ failure: String?) -> Void = { _ in }

    /// Makes a backing without a store.
    public init() {
        directory = nil
        block = RevisionReservation.largestBlock
    }

    /// Makes a backing whose revisions continue where they ended in this directory, which is
    /// created if it is missing.
    ///
    /// Nothing is opened until ``load(_:)``.
    public convenience init(directory: String) {
        self.init(directory: directory, block: RevisionReservation.largestBlock)
    }

    /// The same, with a reservation that is raised `block` revisions at a time.
    package init(directory: String, block: Int64) {
        self.directory = directory
        self.block = block
    }

    /// False.
    public var isPersistent: Bool { false }

    /// A reservation of revisions, if it has a directory.
    public var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.reservation = reservation
        return capabilities
    }

    /// Finds nothing; the epoch is new, and the revision is above all that were published in the
    /// directory before.
    ///
    /// - Throws: ``StateError/Code/locked`` with the pid of the directory's owner,
    ///   ``StateError/Code/corrupt`` if the reservation is damaged, ``StateError/Code/storage`` or
    ///   ``StateError/Code/readOnly`` if it cannot be read or raised.
    public func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        guard let directory else { return LoadedStore(epoch: .random(), revision: 0) }
        precondition(lock == nil, "\(directory) is loaded already")
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StateError(.storage, "\(directory) cannot be created: \(lastSystemError())")
        }
        // The same lock as that of a store in the directory: its owner owns this file, too.
        let lock = try OwnerLock(path: directory + "/lock", for: directory)
        let reservation = try RevisionReservation(
            path: directory + "/memory.revisions",
            block: block,
            onFailure: onReservation
        )
        // Above what was published before: a watch that resumes there must notice that all is gone.
        let revision = reservation.floor > 0 ? reservation.floor + 1 : 0
        try reservation.raise(above: revision)
        self.lock = lock
        self.reservation = reservation
        return LoadedStore(epoch: .random(), revision: revision)
    }

    /// Does nothing.
    public func commit(_ batch: borrowing CommitBatch) {}

    /// Does nothing: no commit fails.
    public func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) -> [String: String?] { [:] }

    /// Releases the lock.
    public func close() { lock = nil }
}
