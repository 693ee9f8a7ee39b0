import Glibc

/// Keeps nothing: entries live as long as the process, and another start is another epoch.
///
/// With a directory it keeps one thing there, the reserved revision, so that they do not repeat: `memory.revisions`,
/// under the `lock` of whoever owns the directory. A store in the same directory is another one, which is left alone.
///
/// `load` is first and once, and nothing else is changed after it: the proof of `@unchecked Sendable`.
public final class MemoryBacking: Backing, @unchecked Sendable {
    private let directory: String?
    private let block: Int64
    /// Held from load to close.
    private var lock: OwnerLock?
    package private(set) var reservation: RevisionReservation?
    /// What is called when the reservation cannot be raised; set before the load.
    package var onReservation: @Sendable (_ failure: String?) -> Void = { _ in }

    /// Makes a backing without a store.
    public init() {
        directory = nil
        block = RevisionReservation.largestBlock
    }

    /// Makes a backing whose revisions go on where they ended in this directory, which is made where it is absent.
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

    /// Finds nothing; the epoch is new, and the revision not below any that was told in the directory before.
    ///
    /// - Throws: ``StateError/Code/locked`` with the pid of the directory's owner, ``StateError/Code/corrupt`` where the reservation
    ///   is damaged, ``StateError/Code/storage`` or ``StateError/Code/readOnly`` where it cannot be read or raised.
    public func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore {
        guard let directory else { return LoadedStore(epoch: .random(), revision: 0) }
        precondition(lock == nil, "\(directory) is loaded already")
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StateError(.storage, "\(directory) cannot be made: \(lastSystemError())")
        }
        // The very lock of a store in the directory: who owns that is asked what happens here, too.
        let lock = try OwnerLock(path: directory + "/lock", for: directory)
        let reservation = try RevisionReservation(
            path: directory + "/memory.revisions",
            block: block,
            onFailure: onReservation
        )
        try reservation.raise()
        self.lock = lock
        self.reservation = reservation
        return LoadedStore(epoch: .random(), revision: reservation.floor)
    }

    /// Does nothing.
    public func commit(_ batch: borrowing CommitBatch) {}

    /// Does nothing: no commit fails.
    public func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) -> [String: String] { [:] }

    /// Does nothing.
    public func maintain() {}

    /// False: there is nothing to maintain.
    public var needsMaintenance: Bool { false }

    /// Releases the lock.
    public func close() { lock = nil }
}
