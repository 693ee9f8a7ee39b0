import StateEngine
import StateWire

/// CLIENT TRACKING of one connection: which keys its client may keep copies of.
///
/// Used only by the loop thread.
final class TrackedClient {
    unowned let connection: Connection
    /// The connection that is sent the invalidations instead; nil for its own.
    var redirection: Int?
    /// The redirection has ended, and the client was informed of it.
    var isBroken = false
    let isBroadcast: Bool
    private(set) var prefixes: [[UInt8]]
    private var countedPrefixes = 0
    /// OPTIN (true) or OPTOUT (false).
    let isOptional: Bool?
    var leavesOutOwn: Bool
    /// CLIENT CACHING for the next command.
    var caching: Bool?
    /// The newest revision before the command that is running.
    var revisionBefore: Int64 = 0
    /// Keys that commands between MULTI and EXEC read.
    var queued: [[UInt8]] = []
    private var own = OwnCommits()

    /// Its commits that are not published yet; only if it leaves them out.
    private struct OwnCommits {
        var revisions: [Int64] = []
        /// From so many on, those that are published are looked for.
        var keptCount = 64
    }

    /// When a key was read.
    struct Reads {
        /// Its place in ``order``.
        var place: Int
        /// The revision of the first read since the last invalidation: a later commit makes that
        /// copy void.
        var first: Int64
        /// The same of the last read.
        var last: Int64
    }

    private var keys: [[UInt8]: Reads] = [:]
    /// The keys in any order, so that any can be evicted.
    private var order: [[UInt8]] = []
    private(set) var byteCount = 0

    init(_ connection: Connection, _ request: Command.TrackingRequest) {
        self.connection = connection
        redirection = request.redirection.map { Int($0) }
        isBroadcast = request.isBroadcast
        isOptional = request.isOptional
        leavesOutOwn = request.leavesOutOwn
        prefixes = []
        if isBroadcast { add(request.prefixes.isEmpty ? [[]] : request.prefixes.map { Array($0) }) }
    }

    /// A client of the last process, without its keys.
    init(_ connection: Connection, _ record: TrackingRecord) {
        self.connection = connection
        (redirection, isBroken) = (record.redirection, record.isBroken)
        (isBroadcast, isOptional) = (record.isBroadcast, record.isOptional)
        (leavesOutOwn, caching) = (record.leavesOutOwn, record.caching)
        (prefixes, queued) = ([], record.queued)
        if isBroadcast { add(record.prefixes) }
    }

    /// Takes over what the same transaction has queued before this one began.
    func takeOver(_ last: TrackedClient) {
        (queued, revisionBefore) = (last.queued, last.revisionBefore)
    }

    var count: Int { keys.count }

    /// The keys, and when they were read.
    var reads: some Collection<(key: [UInt8], value: Reads)> { keys }

    /// Approximate memory of a key: it is kept in the client's table and in the common one.
    private static func byteCount(of key: [UInt8]) -> Int { 2 * key.count + 192 }

    func add(_ prefixes: [[UInt8]]) {
        for prefix in prefixes where !self.prefixes.contains(prefix) {
            self.prefixes.append(prefix)
            byteCount += TrackedClient.byteCount(of: prefix)
        }
    }

    /// Counts the prefixes as globs of the user.
    func countPrefixes() {
        connection.share.account?.globCount += prefixes.count - countedPrefixes
        countedPrefixes = prefixes.count
    }

    /// The client has ended, or follows nothing more.
    func forgetPrefixes() {
        connection.share.account?.globCount -= countedPrefixes
        countedPrefixes = 0
    }

    /// Whether the client keeps what the next command reads.
    var keepsNext: Bool {
        switch isOptional {
        case nil: true
        case true?: caching == true
        case false?: caching != false
        }
    }

    /// Whether its client follows a key in broadcast mode.
    func follows(_ key: Bytes) -> Bool {
        prefixes.contains { $0.withUnsafeBytes { key.hasPrefix($0) } }
    }

    // MARK: Keys

    /// Records a read.
    ///
    /// - Returns: Whether the key is new.
    func note(_ key: [UInt8], at revision: Int64) -> Bool {
        if var reads = keys[key] {
            reads.last = revision
            keys[key] = reads
            return false
        }
        keys[key] = Reads(place: order.count, first: revision, last: revision)
        order.append(key)
        byteCount += TrackedClient.byteCount(of: key)
        return true
    }

    /// What a commit of a key means for the copies of the client.
    enum Effect {
        /// All were read after it.
        case none
        /// One is void, another was read after the commit.
        case someVoid
        /// All are void, and the key is forgotten.
        case allVoid
    }

    func invalidate(_ key: [UInt8], by revision: Int64) -> Effect {
        guard var reads = keys[key], reads.first < revision else { return .none }
        guard reads.last >= revision else {
            forget(key)
            return .allVoid
        }
        reads.first = reads.last
        keys[key] = reads
        return .someVoid
    }

    func forget(_ key: [UInt8]) {
        guard let reads = keys.removeValue(forKey: key), let last = order.popLast() else { return }
        byteCount -= TrackedClient.byteCount(of: key)
        guard last != key else { return }
        order[reads.place] = last
        keys[last]?.place = reads.place
    }

    /// Forgets any key, because the table is full.
    func evict() -> [UInt8]? {
        guard let key = order.randomElement() else { return nil }
        forget(key)
        return key
    }

    /// Forgets all keys and returns them.
    func takeAll() -> [[UInt8]] {
        defer {
            for key in order { byteCount -= TrackedClient.byteCount(of: key) }
            (keys, order) = ([:], [])
        }
        return order
    }

    // MARK: Its own commits

    /// Records a commit of its own; those up to `published` are over.
    func noteOwn(_ revision: Int64, published: Int64) {
        guard leavesOutOwn else { return }
        // Not at each commit: few wait to be published.
        if own.revisions.count >= own.keptCount {
            own.revisions.removeAll { $0 <= published }
            own.keptCount = max(64, 2 * own.revisions.count)
        }
        own.revisions.append(revision)
    }

    /// Whether a commit that is published now is its own, and is left out.
    func leavesOut(_ revision: Int64) -> Bool {
        guard let first = own.revisions.first, first <= revision else { return false }
        return own.revisions.contains(revision)
    }
}

extension KeyspaceCore {
    /// The newest revision, whether or not it is on stable storage.
    var newestRevision: Int64 { max(revisions.provisional, revisions.durable) }
}
