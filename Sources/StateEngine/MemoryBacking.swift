/// Keeps nothing: entries live as long as the process, and another start is another epoch.
public final class MemoryBacking: Backing {
    /// Makes a backing without a store.
    public init() {}

    /// False.
    public var isPersistent: Bool { false }

    /// Finds nothing; the epoch is new.
    public func load(_ receive: (borrowing StoredChange) -> Void) -> LoadedStore {
        LoadedStore(epoch: .random(), revision: 0)
    }

    /// Does nothing.
    public func commit(_ batch: borrowing CommitBatch) {}

    /// Does nothing: no commit fails.
    public func reopen(after revision: Int64, _ receive: (borrowing StoredChange) -> Void) {}

    /// Does nothing.
    public func maintain() {}

    /// False: there is nothing to maintain.
    public var needsMaintenance: Bool { false }

    /// Does nothing.
    public func close() {}
}
