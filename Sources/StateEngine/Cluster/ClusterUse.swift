/// What the open transaction has to do with the keys of a cluster.
///
/// Used under the keyspace's lock, and only if there are such keys.
package final class ClusterUse {
    /// The keys of the cluster that it read, and whether they were there.
    private(set) var reads: [[UInt8]: Bool] = [:]
    /// The beginnings of keys of which it changes all.
    private(set) var prefixes: [[UInt8]] = []
    /// The first key of the cluster that it changed.
    private(set) var changed: [UInt8]?
    /// Whether it read or changed a key that the cluster does not have.
    private(set) var hasOthers = false
    /// Whether its command was carried out before.
    package var isRepeated = false
    /// Whether a rule limits how many keys or bytes there may be.
    private(set) var isCounted = false
    /// Keys that have ended by themselves and are still there: the cluster must delete them.
    private(set) var ended: [Ended] = []

    /// Keys that got a time from now on.
    private(set) var relative: Set<[UInt8]> = []
    /// When the command was carried out first that is carried out again, in milliseconds since 1970.
    var asOf: Int64?

    /// When a command was carried out.
    package struct Moment {
        /// Wall time in milliseconds since 1970.
        package let time: Int64
        /// The same on the clock of ``Deadlines``.
        let clock: Int64
    }

    /// A key whose time has passed.
    package struct Ended {
        package let key: [UInt8]
        /// How long ago, in milliseconds.
        package let age: Int64
        /// Who has set it.
        package let cause: Cause
    }

    /// Whether the cluster has to decide: a key of it was changed, or read for nothing else.
    ///
    /// What changes other keys alone reads the copy as any command does.
    package var isUsed: Bool {
        changed != nil || !hasOthers && !(reads.isEmpty && prefixes.isEmpty)
    }

    func reset() {
        (hasOthers, isCounted, isRepeated) = (false, false, false)
        guard changed != nil || !reads.isEmpty || !prefixes.isEmpty else { return }
        (reads, prefixes, changed, relative) = ([:], [], nil, [])
    }

    func noteRead(_ key: Bytes, isPresent: Bool) {
        let name = Array(key)
        if reads[name] == nil { reads[name] = isPresent }
    }

    func noteChange(_ key: Bytes) { if changed == nil { changed = Array(key) } }

    /// The key gets a time from now on, and may end a little later.
    func noteRelative(_ key: Bytes) { relative.insert(Array(key)) }

    func noteOther() { hasOthers = true }

    func noteCounted() { isCounted = true }

    func note(_ prefix: [UInt8]) { prefixes.append(prefix) }

    func noteEnded(_ key: Bytes, age: Int64, setBy cause: Cause) {
        ended.append(Ended(key: Array(key), age: age, cause: cause))
    }

    package func takeEnded() -> [Ended] {
        defer { ended = [] }
        return ended
    }
}

/// Who asks a cluster for changes of its keys.
package protocol ClusterLink: AnyObject {
    /// Why it cannot be asked; nil if it can.
    var refusal: StateError? { get }
}

/// What a command would change in a cluster, and what that depends on.
///
/// Without changes it only has to be confirmed that the command saw the newest state.
package struct ClusterAttempt {
    /// A key and its new value; nil deletes it.
    package struct Change {
        package let key: [UInt8]
        package let value: [UInt8]?
        /// When it ends by itself, in milliseconds since 1970; nil if it does not.
        package let expires: Int64?
    }

    /// What the cluster has made of a key: its new value, nil if it was deleted, its version, and when
    /// it ends by itself, in milliseconds since 1970.
    package typealias Decided = (value: Bytes?, version: Int64, expires: Int64?)

    /// Keys from `start` to `end`, without it.
    package struct Range {
        package let start: [UInt8]
        package let end: [UInt8]
    }

    package let changes: [Change]
    /// Keys that must be as they were read, and whether they were there.
    package let reads: [[UInt8]: Bool]
    /// No key in them may have been set since.
    package let ranges: [Range]
    /// The changes are that all these keys are deleted; empty: they are made one by one.
    package let deleted: [Range]
    /// Who makes it, as in the history.
    package let cause: [UInt8]
    /// Whether others must be decided before it, or after: what it was judged by is not a key.
    package let isAlone: Bool

    /// To confirm that all is known.
    package init(cause: [UInt8]) {
        self.init(changes: [], reads: [:], ranges: [], deleted: [], cause: cause, isAlone: false)
    }

    init(
        changes: [Change],
        reads: [[UInt8]: Bool],
        ranges: [Range],
        deleted: [Range],
        cause: [UInt8],
        isAlone: Bool
    ) {
        (self.changes, self.reads, self.ranges) = (changes, reads, ranges)
        (self.deleted, self.cause, self.isAlone) = (deleted, cause, isAlone)
    }

    /// The same without its changes and what they depend on.
    package var confirmation: ClusterAttempt { ClusterAttempt(cause: cause) }

    /// The latest time at which a key can end, in milliseconds since 1970: about the year 10889.
    package static let latest: Int64 = 1 << 48 - 1

    /// Within so many milliseconds a time that a client names is kept as it is.
    static let exactTime: Int64 = 86_400_000

    /// A time that is later by an 8,192nd of what is left, at most.
    ///
    /// Each time is a lease of etcd, which stays until then. So keys that are renewed again and again
    /// have 16,384 of them at most, and nobody can leave ever more that end in a thousand years.
    static func rounded(_ expires: Int64, from now: Int64) -> Int64 {
        let most = max(0, expires - now) >> 13
        guard most > 1 else { return expires }
        let step = Int64(1) << (Int64.bitWidth - 1 - most.leadingZeroBitCount)
        return (expires + step - 1) / step * step
    }

    /// So many keys are named in the signature; for more, all changes are its writer's.
    package static let namedCount = 16

    /// So many operations or conditions, whichever are more.
    package var operationCount: Int {
        max(deleted.isEmpty ? changes.count : deleted.count, 2 * reads.count + ranges.count)
    }
    /// Approximately.
    package var byteCount: Int {
        let changed =
            deleted.isEmpty
            ? changes.reduce(0) { $0 + $1.key.count + ($1.value?.count ?? 0) + 24 } : 64
        return reads.reduce(changed) { $0 + 2 * ($1.key.count + 24) } + 128 * ranges.count
    }
}
