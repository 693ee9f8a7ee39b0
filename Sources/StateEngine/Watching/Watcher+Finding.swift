/// Keys that a snapshot has found but not delivered yet, for a subject from whom keys may be
/// hidden.
///
/// How far one read of the keyspace gets depends on all keys on the way, including hidden ones. So
/// a piece does not end with a read: the length of a piece depends only on its contents.
struct FoundKeys {
    /// The keys that the subject may see, from ``passed`` to ``seen``.
    private(set) var keys: Set<[UInt8]> = []
    /// About the number of bytes of a piece of them.
    private(set) var byteCount = 0
    /// The keys up to this one were delivered; nil for none.
    let passed: [UInt8]?
    /// The keys up to this one were read.
    var seen: [UInt8]?

    init(upTo passed: [UInt8]?) { (self.passed, seen) = (passed, passed) }

    /// Adds a key that was read.
    mutating func insert(_ record: Record) {
        if keys.insert(Array(record.key)).inserted { byteCount += record.byteCount + 32 }
    }

    /// Adds a key that was set behind the last one that was read.
    mutating func noteChange(_ record: Record) {
        let isDelivered = passed.map { $0.withUnsafeBytes { !$0.precedes(record.key) } } ?? false
        guard !isDelivered, let seen, seen.withUnsafeBytes({ !$0.precedes(record.key) })
        else { return }
        insert(record)
    }
}

extension Watcher {
    /// Reads keys for the next piece, and delivers it once it is complete: about `byteLimit` bytes,
    /// or all that is left.
    ///
    /// - Returns: Whether nothing is left.
    func deliverFound(
        _ receiver: any WatchReceiver,
        in core: KeyspaceCore,
        byteLimit: Int
    ) -> Bool {
        var isAtEnd = false
        if let found, found.byteCount < byteLimit { isAtEnd = look(in: core, byteLimit: byteLimit) }
        guard let found, isAtEnd || found.byteCount >= byteLimit else { return false }
        let piece = found.keys.sorted { $0.precedes($1) }.compactMap { key in
            key.withUnsafeBytes { core.readDurable($0) }
        }
        .filter { isShown($0, in: core) }
        if !piece.isEmpty { receiver.receive(.piece(piece), in: core) }
        guard !isAtEnd else { return true }
        phase = .snapshot(passed: found.seen)
        self.found = FoundKeys(upTo: found.seen)
        return false
    }

    /// Reads keys until they are enough for a piece, or for one read.
    ///
    /// - Returns: Whether nothing is left.
    private func look(in core: KeyspaceCore, byteLimit: Int) -> Bool {
        var last: Record?
        var isStopped = false
        var hiddenByteCount = 0
        func collect(_ bound: Bytes?) -> [UInt8]? {
            core.forEachDurable(patterns, after: bound, comparing: byteLimit) { record in
                last = record
                if isShown(record, in: core) {
                    found?.insert(record)
                } else {
                    // Looking up its rule costs as much as comparing it with a pattern.
                    hiddenByteCount += record.key.count + 32
                }
                isStopped = hiddenByteCount >= byteLimit || found?.byteCount ?? 0 >= byteLimit
                return !isStopped
            }
        }
        let seen =
            if let bound = found?.seen { bound.withUnsafeBytes { collect($0) } } else {
                collect(nil)
            }
        if let seen = seen ?? (isStopped ? last.map { Array($0.key) } : nil) { found?.seen = seen }
        return seen == nil && !isStopped
    }
}
