/// A backing whose store others may change too: files, which people edit.
///
/// Its keys are paths: where there is one, there is none below it, neither in the store nor in what is written to it.
///
/// What others changed is a commit of its own. Where that is found out by a commit, nothing of the batch is committed
/// (``EditedMeanwhile``): the keyspace undoes what is provisional, adopts what others did, and then does again what its
/// callers had asked. So a condition on the old revision fails, and a plain set wins.
public protocol EditableBacking: Backing {
    /// Refuses a key that the store cannot hold, or cannot write at the moment.
    ///
    /// Called under the keyspace's lock for each set and delete; it may not wait for storage.
    ///
    /// - Throws: ``StateError``, naming the key; the writer alone is refused.
    func validate(_ key: Bytes) throws(StateError)

    /// Begins to tell of changes that others make, once, after the load.
    ///
    /// - Parameter wake: Called on any thread whenever ``takeOutsideChanges()`` has something to look at, until `close`.
    func watchOutside(_ wake: @escaping @Sendable () -> Void)

    /// What others have changed since the last call, each key once; it is on stable storage.
    ///
    /// Called from the commit thread, or after a commit that it interrupted from the same thread. What is as the keyspace has it already is no change: it may be among them.
    func takeOutsideChanges() -> [OutsideChange]
}

/// Thrown by the `commit` of an ``EditableBacking``: nothing was committed, and ``EditableBacking/takeOutsideChanges()`` or
/// ``EditableBacking/validate(_:)`` says more than before.
public struct EditedMeanwhile: Error {
    /// Makes the error.
    public init() {}
}

/// What others made of one key.
public struct OutsideChange: Hashable, Sendable {
    /// The key.
    public var key: [UInt8]
    /// What it holds now; nil where it is gone.
    public var value: [UInt8]?
    /// Whom the commit names as its cause: the owner; nil where that is not known.
    public var writer: Cause?
    /// Wall time of the change in milliseconds since 1970.
    public var time: Int64

    /// Makes a change.
    public init(key: [UInt8], value: [UInt8]?, writer: Cause?, time: Int64) {
        self.key = key
        self.value = value
        self.writer = writer
        self.time = time
    }
}
