package import StateEngine
import StateLog

/// What is deferred is in a log beside the store until the store's own log has it (``DeferralLog``).
extension SQLiteBacking: DeferralKeeping {
    package var hasAllDeferred: Bool { deferred.hasAll }

    package var leftDeferred: LeftDeferred { deferred.left }

    package func prepareToDefer() { deferrals.prepare() }

    package func add(_ batch: CommitBatch, storedThrough revision: Int64) {
        deferrals.add(batch, storedThrough: revision)
    }

    package func keep() -> Bool { deferrals.keep() }

    package var unstoredByteCount: Int { deferrals.unstoredByteCount }

    package func didStore(through revision: Int64) { deferrals.remove(through: revision) }
}

extension DeferredBatch {
    /// Adds its commits to a frame.
    ///
    /// What a change supersedes is known by its place only.
    ///
    /// - Returns: The changes that would have to carry that.
    func code(
        in coder: inout CommitCoder,
        carryingBelow line: Int64
    ) -> [UncarriedChange] {
        var uncarried: [UncarriedChange] = []
        var last: (revision: Int64, cause: [UInt8])?
        let metadata = read { change in
            if change.revision != last?.revision {
                last = (change.revision, Array(change.cause))
                coder.begin(change.revision, at: change.time, cause: change.cause)
            }
            if change.previousRevision > 0, change.previousRevision < line {
                let key = Array(change.key)
                uncarried.append(UncarriedChange(key: key, revision: change.revision))
            }
            last?.cause.withUnsafeBytes { coder.append(change, cause: $0) }
        }
        for entry in metadata {
            if last == nil {
                coder.begin(entry.revision, at: 0, cause: Bytes(start: nil, count: 0))
            }
            coder.append(metadata: entry.name, entry.text)
        }
        return uncarried
    }
}
