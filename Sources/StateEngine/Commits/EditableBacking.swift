/// A backing whose store others may change too: files, which people edit.
///
/// If its keys are paths and a path is a key, no path below it is one, neither in the store nor in
/// what is written to it.
///
/// What others changed is a commit of its own. If a commit finds such a change, nothing of the
/// batch is committed (``EditedMeanwhile``). The keyspace undoes what is provisional, adopts the
/// changes of others, and then repeats what its callers asked for. So a condition on the old
/// revision fails, and a plain set wins.
public protocol EditableBacking: Backing {
    /// Whether keys are paths, so that no key can be below another. True by default.
    var keysArePaths: Bool { get }

    /// Refuses a key that the store cannot hold, or cannot write now.
    ///
    /// Called under the keyspace's lock for each set and delete; it may not wait for storage.
    ///
    /// - Throws: ``StateError``, naming the key; only this writer is refused.
    func validate(_ key: Bytes) throws(StateError)

    /// Begins to report changes that others make. Called once, after the load.
    ///
    /// - Parameter wake: Called on any thread whenever ``takeOutsideChanges()`` has something to
    ///   check, until `close`.
    func watchOutside(_ wake: @escaping @Sendable () -> Void)

    /// What others have changed since the last call, each key once; it is on stable storage.
    ///
    /// Called from the commit thread, or after a commit that it interrupted from the same thread.
    /// May contain values that the keyspace has already; these are not changes.
    func takeOutsideChanges() -> [OutsideChange]
}

extension EditableBacking {
    /// True.
    public var keysArePaths: Bool { true }
}

/// Thrown by the `commit` of an ``EditableBacking``: nothing was committed, and
/// ``EditableBacking/takeOutsideChanges()`` or ``EditableBacking/validate(_:)`` reports more than
/// before.
public struct EditedMeanwhile: Error {
    /// Makes the error.
    public init() {}
}

/// A change that others made to one key.
public struct OutsideChange: Hashable, Sendable {
    /// The key.
    public var key: [UInt8]
    /// Its new value; nil if the key was removed.
    public var value: [UInt8]?
    /// The cause of the commit: the owner; nil if unknown.
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
