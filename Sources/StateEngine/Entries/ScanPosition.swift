/// The position of a listing that runs in slices, and the keys behind it that have changed since
/// they were passed.
///
/// The lister takes the changed keys and reads each of them again: then its result is the state of
/// that moment. Everything is under the keyspace's lock.
package final class ScanPosition {
    /// Keys up to this one were read; nil before the first.
    package var passed: [UInt8]?
    private var changed: Set<[UInt8]> = []

    package init() {}

    /// The keys that changed behind the position since the last call, in no order.
    package func takeChanged() -> Set<[UInt8]> {
        defer { changed = [] }
        return changed
    }

    package var hasChanged: Bool { !changed.isEmpty }

    /// Records that a key has changed, if it is behind the position.
    ///
    /// - Complexity: O(*n*) in the bytes of the key.
    package func note(_ key: Bytes) {
        guard let passed, passed.withUnsafeBytes({ !$0.precedes(key) }) else { return }
        changed.insert(Array(key))
    }
}

extension EntryStore {
    /// Records changed keys for a listing, until ``end(_:)``.
    package mutating func begin(_ scan: ScanPosition) { scans.append(scan) }

    package mutating func end(_ scan: ScanPosition) { scans.removeAll { $0 === scan } }

    /// Calls `body` for the newest versions of the keys that begin with `prefix` and are after
    /// `bound`, in key order, without those that have expired, until it returns false.
    package func forEachPresent(
        below prefix: Bytes,
        after bound: Bytes?,
        _ body: (Record) -> Bool
    ) {
        let now = deadlines.count > 0 ? clock() : 0
        live.forEach(prefix: prefix, after: bound) { head in
            head.isDeleted || head.hasDeadline && head.deadline <= now || body(head)
        }
    }

    /// How many listings are running in slices.
    package var scanCount: Int { scans.count }
}

extension KeyspaceCore {
    /// Calls `body` for the newest versions that have not expired; compares at most about
    /// `budget` bytes of keys with patterns, which becomes what is left of it.
    ///
    /// Everything counts as read, absent keys too.
    ///
    /// - Returns: The last key that was compared, if there may be more; nil if all were compared,
    ///   or `body` returned false.
    package func forEach(
        _ patterns: PatternSet,
        after bound: Bytes?,
        comparing budget: inout Int,
        _ receipt: inout Receipt,
        _ body: (Record) -> Bool
    ) -> [UInt8]? {
        observeAll(&receipt)
        let now = entries.deadlines.count > 0 ? entries.clock() : 0
        return patterns.forEach(in: entries.live, after: bound, comparing: &budget) { head in
            head.isDeleted || head.hasDeadline && head.deadline <= now || body(head)
        }
    }
}
