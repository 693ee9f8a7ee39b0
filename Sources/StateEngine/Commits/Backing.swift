/// Where commits are kept: the one contract that storage has to meet.
///
/// `load` runs first and once. After it, calls come one at a time: each from the commit thread, but ``commit(_:)`` and
/// ``needsMaintenance`` also from a thread that waits for its write. What one call did is seen by the next.
public protocol Backing: AnyObject, Sendable {
    /// Whether what is committed outlives the process. Changes of one that does not are told at once.
    var isPersistent: Bool { get }

    /// What it can do beside that; asked for once, after the load. By default nothing.
    var capabilities: BackingCapabilities { get }

    /// Reads everything back.
    ///
    /// - Parameter receive: Called for each change in order of revision and ordinal; the bytes in it are borrowed.
    /// - Returns: The identity of the store and its last revision.
    /// - Throws: ``StateError``, where the store is locked, corrupt, of a newer format or cannot be opened; it is left as it is.
    func load(_ receive: (borrowing StoredChange) -> Void) throws -> LoadedStore

    /// Makes all commits of the batch durable in one transaction and one sync.
    ///
    /// - Throws: ``StateError`` with ``StateError/Code/noSpace`` where nothing was committed, with ``StateError/Code/readOnly``
    ///   where the outcome is unknown.
    func commit(_ batch: borrowing CommitBatch) throws

    /// Opens the store anew, after a commit whose outcome is unknown, from what storage really holds.
    ///
    /// - Parameters:
    ///   - revision: The last one that `commit` said was durable; the store must hold everything up to it.
    ///   - receive: Called for each change beyond it, in order of revision and ordinal; the bytes in it are borrowed. They
    ///     are durable, and are told as the commits that they are.
    /// - Returns: The metadata that the store holds, by name; empty if it keeps none.
    /// - Throws: ``StateError``, where it cannot be opened or has lost what was durable; may be called again.
    @discardableResult
    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String]

    /// What has to be done now and then, after the replies to a commit have gone: checkpoints.
    func maintain()

    /// Whether ``maintain()`` has anything to do: asked after each commit of a thread that waits for it, which leaves the
    /// work to the commit thread. By default true.
    var needsMaintenance: Bool { get }

    /// Ends cleanly: nothing that was committed is left to recover.
    func close()
}

extension Backing {
    /// Nothing.
    public var capabilities: BackingCapabilities { BackingCapabilities() }

    /// True: ``maintain()`` itself looks what there is to do.
    public var needsMaintenance: Bool { true }
}

/// What a backing can do beside keeping commits.
public struct BackingCapabilities: Sendable {
    /// Its commits stay readable.
    public var history: (any HistoryBacking)?
    /// Others may change its store, too.
    public var editing: (any EditableBacking)?
    /// It takes superseded changes out of its history.
    package var compaction: (any CompactingBacking)?
    /// It keeps what is known of keys that live in files beside the history.
    package var files: (any PendingFileListBacking)?
    /// Whether it keeps notes beside the entries (``MetadataEntry``).
    package var keepsMetadata = false
    /// Above it no revision may be taken; nil if the store itself keeps the revisions.
    package var reservation: RevisionReservation?

    /// Can do nothing else.
    public init() {}
}

/// One change as a backing keeps it.
public struct StoredChange {
    /// The commit that it belongs to.
    public var revision: Int64
    /// Its place in that commit, from 0.
    public var ordinal: Int32
    /// The key, borrowed.
    public var key: Bytes
    /// The new value, borrowed; nil where the key was deleted.
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
    /// Who made it: ``Cause/description`` in UTF-8, borrowed; empty where nobody did.
    public var cause: Bytes
    /// The change of the same key that this one supersedes; revision 0 where there is none.
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
    /// The newest revision that the store may have told; 0 for an empty one.
    public var revision: Int64
    /// From this revision on the history is whole; 0 where all of it is.
    public var compacted: Int64
    /// What it keeps beside the entries, by name.
    package var metadata: [String: String] = [:]

    /// Makes an answer.
    public init(epoch: Epoch, revision: Int64, compacted: Int64 = 0) {
        self.epoch = epoch
        self.revision = revision
        self.compacted = compacted
    }
}
