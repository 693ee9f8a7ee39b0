/// What is durable, and who wrote it.
extension KeyspaceCore {
    /// The version of `key` that is on stable storage; nil if it is absent there.
    package func readDurable(_ key: Bytes) -> Record? {
        guard let version = entries.head(key)?.version(at: revisions.durable), !version.isDeleted
        else {
            return nil
        }
        return version
    }

    /// The newest durable change of `key` that storage keeps; nil if none is known.
    ///
    /// - Complexity: O(*n*) to copy the value.
    package func newestChange(of key: Bytes) -> PastChange? {
        let version = entries.head(key)?.version(at: revisions.durable)
        let stored = version.flatMap { $0.isVolatile ? nil : $0 }
        guard let record = stored ?? entries.deleted.record(for: key) else { return nil }
        return causeBytes(of: record).withUnsafeBytes { PastChange(record, cause: $0) }
    }

    /// Records in the receipt that everything was read.
    package func observeAll(_ receipt: inout Receipt) {
        if revisions.provisional > revisions.durable { receipt.noteRead(revisions.provisional) }
    }

    /// Calls `body` for the durable versions of the entries that match one of `patterns`, in key
    /// order, until it returns false.
    ///
    /// - Parameters:
    ///   - patterns: Each entry is passed once, however many of them match it.
    ///   - bound: Only keys after this one.
    ///   - body: Takes a version, borrowed.
    /// - Complexity: O(*m*) in the entries below the patterns' literal parts.
    package func forEachDurable(
        _ patterns: PatternSet,
        after bound: Bytes?,
        _ body: (Record) -> Bool
    ) {
        patterns.forEach(in: entries.live, after: bound) { [durable = revisions.durable] head in
            guard let version = head.version(at: durable), !version.isDeleted else {
                return true
            }
            return body(version)
        }
    }

    /// The same, but compares at most about `byteCount` bytes of keys with patterns.
    ///
    /// - Returns: The last key that was compared, if there may be more; nil if all were compared,
    ///   or `body` returned false.
    package func forEachDurable(
        _ patterns: PatternSet,
        after bound: Bytes?,
        comparing byteCount: Int,
        _ body: (Record) -> Bool
    ) -> [UInt8]? {
        var budget = byteCount
        return patterns.forEach(in: entries.live, after: bound, comparing: &budget) {
            [durable = revisions.durable] head in
            guard let version = head.version(at: durable), !version.isDeleted else {
                return true
            }
            return body(version)
        }
    }

    /// Calls `body` for the newest versions that are not on stable storage yet, including deletes,
    /// in key order.
    package func forEachProvisional(_ patterns: PatternSet, _ body: (Record) -> Void) {
        patterns.forEach(in: entries.live, after: nil) { [durable = revisions.durable] head in
            if head.revision > durable { body(head) }
            return true
        }
    }

    /// Any key, perhaps a deleted one or one that nobody may see; nil if there is none.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package func randomKey(_ random: inout some RandomNumberGenerator) -> [UInt8]? {
        entries.live.randomRecord(&random).map { Array($0.key) }
    }

    /// Who wrote the newest version of `key`; nil if it is absent.
    package func newestCause(of key: Bytes) -> Cause? { peek(key).map { cause(of: $0) } }

    /// Who wrote a version.
    package func cause(of record: Record) -> Cause { entries.causes[record.cause].cause }

    /// The same, as ``Cause/description`` in UTF-8.
    package func causeBytes(of record: Record) -> [UInt8] { entries.causes[record.cause].bytes }
}
