import StateEngine
import StateWire

/// CLIENT TRACKING of one connection: which keys its client may keep copies of.
///
/// Used only by the loop thread.
final class TrackedClient {
    unowned let connection: Connection
    /// Its user, who has a share of the table.
    let user: TrackedUser
    /// The connection that is sent the invalidations instead; nil for its own.
    var redirection: Int?
    /// The redirection has ended, and the client was informed of it.
    var isBroken = false
    let isBroadcast: Bool
    private var broadcast = Broadcast()
    /// OPTIN (true) or OPTOUT (false).
    let isOptional: Bool?
    var leavesOutOwn: Bool
    /// CLIENT CACHING for the next command.
    var caching: Bool?
    /// The newest revision before the command that is running.
    var revisionBefore: Int64 = 0
    /// Keys that commands between MULTI and EXEC read.
    private(set) var queued: [[UInt8]] = []
    private var queuedByteCount = 0
    private var own = OwnCommits()

    /// Its commits that are not published yet; only if it leaves them out.
    private struct OwnCommits {
        var revisions: [Int64] = []
        /// From so many on, those that are published are looked for.
        var keptCount = 64
    }

    private(set) var copies = TrackedCopies()

    /// The prefixes of BCAST.
    private struct Broadcast {
        var prefixes: [[UInt8]] = []
        /// Those that ``Tracking`` looks up.
        var followed: [FollowedPrefix] = []
        /// How many count as globs of the user.
        var countedCount = 0
        var byteCount = 0
    }

    init(_ connection: Connection, _ user: TrackedUser, _ request: Command.TrackingRequest) {
        (self.connection, self.user) = (connection, user)
        redirection = request.redirection.map { Int($0) }
        isBroadcast = request.isBroadcast
        isOptional = request.isOptional
        leavesOutOwn = request.leavesOutOwn
        if isBroadcast { add(request.prefixes.isEmpty ? [[]] : request.prefixes.map { Array($0) }) }
        copies.client = self
    }

    /// A client of the last process, without its keys.
    init(_ connection: Connection, _ user: TrackedUser, _ record: TrackingRecord) {
        (self.connection, self.user) = (connection, user)
        (redirection, isBroken) = (record.redirection, record.isBroken)
        (isBroadcast, isOptional) = (record.isBroadcast, record.isOptional)
        (leavesOutOwn, caching) = (record.leavesOutOwn, record.caching)
        for key in record.queued { queue(key) }
        if isBroadcast { add(record.prefixes) }
        copies.client = self
    }

    /// Takes over what the same transaction has queued before this one began.
    func takeOver(_ last: TrackedClient) {
        (queued, queuedByteCount) = (last.queued, last.queuedByteCount)
        revisionBefore = last.revisionBefore
    }

    var byteCount: Int { copies.byteCount + broadcast.byteCount + queuedByteCount }

    /// Adds a key that a command between MULTI and EXEC reads.
    func queue(_ key: [UInt8]) {
        queued.append(key)
        queuedByteCount += key.count + 64
    }

    func forgetQueued() { (queued, queuedByteCount) = ([], 0) }

    var prefixes: [[UInt8]] { broadcast.prefixes }

    /// Calls `insert` for each prefix that is not looked up yet.
    func follow(_ insert: (FollowedPrefix, _ prefix: [UInt8]) -> Void) {
        for prefix in prefixes[broadcast.followed.count...] {
            let followed = FollowedPrefix(of: self)
            broadcast.followed.append(followed)
            insert(followed, prefix)
        }
    }

    /// Calls `body` for each prefix that is looked up.
    func forEachFollowed(_ body: (FollowedPrefix, _ prefix: [UInt8]) -> Void) {
        for (prefix, followed) in zip(prefixes, broadcast.followed) { body(followed, prefix) }
    }

    func add(_ prefixes: [[UInt8]]) {
        for prefix in prefixes where !broadcast.prefixes.contains(prefix) {
            broadcast.prefixes.append(prefix)
            broadcast.byteCount += TrackedCopies.byteCount(of: prefix)
        }
    }

    /// Counts the prefixes as globs of the user.
    func countPrefixes() {
        connection.share.account?.globCount += prefixes.count - broadcast.countedCount
        broadcast.countedCount = prefixes.count
    }

    /// The client has ended, or follows nothing more.
    func forgetPrefixes() {
        connection.share.account?.globCount -= broadcast.countedCount
        broadcast.countedCount = 0
    }

    /// Whether the client keeps what the next command reads.
    var keepsNext: Bool {
        switch isOptional {
        case nil: true
        case true?: caching == true
        case false?: caching != false
        }
    }

    /// Begins with no copies.
    ///
    /// - Returns: Those that it had, which belong to nobody now.
    func takeCopies() -> TrackedCopies {
        let void = copies
        user.itemCount -= void.count
        void.client = nil
        copies = TrackedCopies()
        copies.client = self
        return void
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

/// A prefix of BCAST, with the client that follows its keys.
///
/// Used only by the loop thread.
final class FollowedPrefix {
    unowned let client: TrackedClient

    init(of client: TrackedClient) { self.client = client }
}

extension KeyspaceCore {
    /// The newest revision, whether or not it is on stable storage.
    var newestRevision: Int64 { max(revisions.provisional, revisions.durable) }
}
