/// Where commits are kept: the contract that storage must meet.
///
/// ``load(_:)`` runs first and once. After it, calls come one at a time: each from the commit
/// thread, but ``commit(_:)`` also from a thread that waits for its write.
/// Each call sees the effects of the call before it.
public protocol Backing: AnyObject, Sendable {
    /// Whether commits outlive the process. If not, changes are published at once.
    var isPersistent: Bool { get }

    /// Optional abilities; asked for once, after the load. None by default.
    var capabilities: BackingCapabilities { get }

    /// Reads everything back.
    ///
    /// - Parameter receive: Called for the newest change of each key, and perhaps for older ones before
    ///   it; those of a key come in order of revision and ordinal. The bytes in it are borrowed.
    /// - Returns: The identity of the store and its last revision.
    /// - Throws: ``StateError`` if the store is locked, corrupt, of a newer format or cannot be
    ///   opened; the store stays unchanged.
    func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore

    /// Makes all commits of the batch durable in one transaction and one sync.
    ///
    /// - Throws: ``StateError`` with ``StateError/Code/noSpace`` if nothing was committed, with
    ///   ``StateError/Code/readOnly`` if the outcome is unknown.
    func commit(_ batch: borrowing CommitBatch) throws

    /// Reopens the store after a commit whose outcome is unknown, from what storage really holds.
    ///
    /// - Parameters:
    ///   - revision: The last revision that `commit` reported as durable; the store must hold
    ///     everything up to it.
    ///   - receive: Called for each change beyond it, in order of revision and ordinal; the bytes
    ///     in it are borrowed. These changes are durable and are published as the commits that they
    ///     are.
    /// - Returns: The metadata that these commits changed, by name; nil for what they removed.
    /// - Throws: ``StateError`` if it cannot be opened or has lost durable changes; may be called
    ///   again.
    @discardableResult
    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String?]

    /// Closes cleanly: no commit needs recovery afterwards.
    func close()
}

extension Backing {
    /// No optional abilities.
    public var capabilities: BackingCapabilities { BackingCapabilities() }
}

/// What a backing can do besides keeping commits.
public struct BackingCapabilities: Sendable {
    /// Its commits stay readable.
    public var history: (any HistoryBacking)?
    /// Others may change its store, too.
    public var editing: (any EditableBacking)?
    /// It removes superseded changes from its history.
    package var compaction: (any CompactingBacking)?
    /// It keeps the list of pending files, for keys that live in files beside the history.
    package var files: (any PendingFileListBacking)?
    /// Whether it keeps metadata beside the entries (``MetadataEntry``).
    package var keepsMetadata = false
    /// It keeps deferred changes where the end of the process does not lose them.
    package var deferrals: (any DeferralKeeping)?
    /// The reservation that limits revisions; nil if the store itself keeps the revisions.
    package var reservation: RevisionReservation?

    /// No optional abilities.
    public init() {}
}

/// One change as a backing keeps it.
public struct StoredChange {
    /// The commit that made it.
    public var revision: Int64
    /// Its place in that commit, from 0.
    public var ordinal: Int32
    /// The key, borrowed.
    public var key: Bytes
    /// The new value, borrowed; nil for a delete.
    public var value: Bytes?
    /// The revision that created the entry.
    public var created: Int64
    /// The uid that created it.
    public var owner: UInt32
    /// How many times it was set since.
    public var version: Int64
    /// Wall time in milliseconds since 1970.
    public var time: Int64
    /// Wall time in milliseconds at which it expires.
    public var expires: Int64?
    /// Who made it: ``Cause/description`` in UTF-8, borrowed; empty if nobody did.
    public var cause: Bytes
    /// The change of the same key that this one supersedes; revision 0 if there is none.
    public var previousRevision: Int64
    /// That change's place in its commit.
    public var previousOrdinal: Int32

    /// Makes a change.
    public init(
        revision: Int64,
        ordinal: Int32,
        key: Bytes,
        value: Bytes?,
        created: Int64,
        owner: UInt32,
        version: Int64,
        time: Int64,
        expires: Int64? = nil,
        cause: Bytes,
        previousRevision: Int64,
        previousOrdinal: Int32
    ) {
        self.revision = revision
        self.ordinal = ordinal
        self.key = key
        self.value = value
        self.created = created
        self.owner = owner
        self.version = version
        self.time = time
        self.expires = expires
        self.cause = cause
        self.previousRevision = previousRevision
        self.previousOrdinal = previousOrdinal
    }
}

/// What `load` found.
public struct LoadedStore: Hashable, Sendable {
    /// The identity of the store.
    public var epoch: Epoch
    /// The newest revision that the store may have published; 0 for an empty store.
    public var revision: Int64
    /// From this revision on the history is complete; 0 if all of it is.
    public var compacted: Int64
    /// The metadata that it keeps beside the entries, by name.
    package var metadata: [String: String] = [:]

    /// Makes an answer.
    public init(epoch: Epoch, revision: Int64, compacted: Int64 = 0) {
        self.epoch = epoch
        self.revision = revision
        self.compacted = compacted
    }
}
