import CLinux
import StateEngine
import StateWire

/// CLIENT TRACKING: clients that keep copies of values are sent which of them are void.
///
/// An invalidation goes out when the commit is durable, and before every reply that waits for that
/// commit. So nobody has a reply that a copy contradicts, unless the client that has the copy does
/// not read.
///
/// ```
/// GET k          the key is recorded with the newest revision, perhaps a provisional one
/// commit r       copies that were read before r are void; those of r or later stay recorded
/// ```
///
/// A reply that is held may have been read before a commit whose invalidation goes out before it:
/// then the invalidation is sent again behind the held replies.
///
/// The table is bounded, and shared by users: where it is full, a user with more than a share loses a
/// key, which is sent as an invalidation to the client of this user that has most. Used only by the
/// loop thread, under the keyspace's lock.
final class Tracking {
    let settings: Settings
    private let registry: Registry
    private let channels: Channels
    private let flushes: FlushList
    /// By the number of the connection.
    private(set) var clients: [Int: TrackedClient] = [:]
    private var users: [UInt32: TrackedUser] = [:]
    /// The prefixes of BCAST.
    private var prefixes = LiteralTable<FollowedPrefix>()
    /// Those that keep copies of a key; see ``TrackedCopies/Reads/seat``.
    private var table: [[UInt8]: [TrackedCopies]] = [:]
    /// Keys in ``table``, once for each client.
    private(set) var itemCount = 0
    private let leftovers: Leftovers
    private var subscription: CommitSubscription?

    /// More keys in one push are an invalidation of everything.
    private static let pushedCount = 10_000
    /// If a commit makes more copies of one user void, all copies of this user are: that takes 2 ms
    /// at most.
    private static let voidCount = 20_000
    /// The channel of clients that have RESP2.
    private static let channel: StaticString = "__redis__:invalidate"

    init(
        _ settings: Settings,
        _ registry: Registry,
        _ channels: Channels,
        _ flushes: FlushList,
        _ leftovers: Leftovers
    ) {
        (self.settings, self.registry) = (settings, registry)
        (self.channels, self.flushes, self.leftovers) = (channels, flushes, leftovers)
    }

    var clientCount: Int { clients.count }
    var keyCount: Int { table.count }
    var prefixCount: Int { Set(clients.values.flatMap(\.prefixes)).count }
    /// Watchers in the keyspace's hub that do not belong to STATE.WATCH.
    var watcherCount: Int { subscription == nil ? 0 : 1 }

    // MARK: Clients

    /// CLIENT TRACKING ON.
    ///
    /// - Throws: ``StateError/Code/err`` in the words of Redis, or ``StateError/Code/limit`` for too
    ///   many prefixes; nothing has changed.
    func begin(
        _ request: Command.TrackingRequest,
        _ context: borrowing CommandContext
    ) throws(StateError) {
        let connection = context.connection
        let known = connection.session.tracking
        if let number = request.redirection {
            // What others' clients are sent is not for this one to say, nor whether they exist.
            guard let other = registry.all[Int(truncatingIfNeeded: number)], context.maySee(other)
            else { throw StateError(.err, "The client ID you want redirect to does not exist") }
        }
        if let known { try check(request, against: known) }
        if request.isBroadcast {
            try settings.options.checkGlobs(max(1, request.prefixes.count), context)
        }
        // Order matters: it compares each with each.
        try check(request.prefixes.map { Array($0) }, known?.prefixes ?? [])
        defer { connection.session.tracking?.countPrefixes() }
        if let known {
            known.redirection = request.redirection.map { Int($0) }
            known.leavesOutOwn = request.leavesOutOwn
            known.add(request.prefixes.map { Array($0) })
            follow(known)
            return
        }
        add(TrackedClient(connection, user(of: connection), request), context.core)
    }

    /// The user of a connection that is or becomes a client.
    func user(of connection: Connection) -> TrackedUser {
        let uid = connection.peer.uid
        let user = users[uid] ?? TrackedUser(uid: uid)
        users[uid] = user
        return user
    }

    /// Looks up the new prefixes of a client from now on.
    private func follow(_ client: TrackedClient) {
        client.follow { prefixes.insert($0, under: $1) }
    }

    func add(_ client: TrackedClient, _ core: KeyspaceCore) {
        client.connection.session.tracking = client
        clients[client.connection.number] = client
        client.user.add(client)
        follow(client)
        guard subscription == nil else { return }
        subscription = CommitSubscription(PatternSet([.everything]), in: core) {
            [unowned self] revision, changes, core in
            receive(changes, of: revision, core)
        }
        core.hub.mustComeFirst = true
    }

    private func check(
        _ request: Command.TrackingRequest,
        against known: TrackedClient
    ) throws(StateError) {
        let rest =
            "mode before disabling tracking for this client, and then re-enabling it with a "
            + "different mode."
        guard request.isBroadcast == known.isBroadcast else {
            throw StateError(.err, "You can't switch BCAST \(rest)")
        }
        guard request.isOptional == known.isOptional else {
            throw StateError(.err, "You can't switch OPTIN/OPTOUT \(rest)")
        }
    }

    /// Refuses prefixes that overlap, since a change would be sent twice.
    private func check(_ new: [[UInt8]], _ known: [[UInt8]]) throws(StateError) {
        let limit = settings.options.watchCount
        guard new.count + known.count <= limit else {
            throw StateError(.limit, "more than \(limit) prefixes, the limit (limits.watches)")
        }
        for prefix in new where prefix.count > Key.maximumByteCount {
            let limit = Key.maximumByteCount
            throw StateError(.tooBig, "the prefix has \(prefix.count) bytes; the limit is \(limit)")
        }
        for (index, prefix) in new.enumerated() {
            let others = known + new[(index + 1)...]
            for other in others where other != prefix || index < new.count - 1 && known.isEmpty {
                guard !other.starts(with: prefix), !prefix.starts(with: other) else {
                    let names = [prefix, other].map { $0.withUnsafeBytes { StateError.quoted($0) } }
                    throw StateError(
                        .err,
                        "Prefix \(names[0]) overlaps with an existing prefix \(names[1]). Prefixes "
                            + "for a single client must not overlap."
                    )
                }
            }
        }
    }

    /// CLIENT TRACKING OFF, and the end of a connection.
    func end(_ connection: Connection, _ core: KeyspaceCore) {
        guard let client = connection.session.tracking else { return }
        connection.session.tracking = nil
        client.forgetPrefixes()
        clients[connection.number] = nil
        client.forEachFollowed { prefixes.remove($0, under: $1) }
        leave(client.takeCopies(), client.connection)
        client.user.remove(client)
        if client.user.clients.isEmpty { users[client.user.uid] = nil }
        guard clients.isEmpty else { return }
        subscription?.end(in: core)
        subscription = nil
        core.hub.mustComeFirst = false
    }

    /// Has void copies leave the table, in slices that are charged to the user of `connection`.
    func leave(_ void: TrackedCopies, _ connection: Connection) {
        if void.count > 0 { leftovers.add(void, of: connection) }
    }

    /// Takes a key out of copies, and them out of the table.
    ///
    /// - Complexity: O(1).
    func remove(_ key: [UInt8], from copies: TrackedCopies) {
        guard let seat = copies.forget(key), let place = table.index(forKey: key) else { return }
        itemCount -= 1
        let last = table.values[place].removeLast()
        if last !== copies {
            table.values[place][seat] = last
            last.move(key, to: seat)
        }
        if table.values[place].isEmpty { table.remove(at: place) }
    }

    /// Adds copies to those of a key.
    ///
    /// - Returns: Their seat.
    private func add(_ copies: TrackedCopies, to key: [UInt8]) -> Int {
        itemCount += 1
        table[key, default: []].append(copies)
        return table[key, default: []].count - 1
    }

    // MARK: Reads

    /// Records what a command has read, or will read at EXEC, and what it has committed, if anything.
    ///
    /// - Parameters:
    ///   - verb: The verb of the command.
    ///   - arguments: The command.
    ///   - isQueued: Whether it was queued.
    ///   - client: Whose reads they are.
    ///   - context: The context of the command.
    func note(
        _ verb: Verb,
        _ arguments: Arguments,
        isQueued: Bool,
        _ client: TrackedClient,
        _ context: borrowing CommandContext
    ) {
        // EXEC may have ended it, and begun another.
        guard let current = context.connection.session.tracking else { return }
        if current !== client { current.takeOver(client) }
        let (client, core) = (current, context.core)
        if core.newestRevision > client.revisionBefore {
            client.noteOwn(core.newestRevision, published: core.revisions.durable)
        }
        if verb.name == .client { return }
        // An EXEC that failed has left them.
        if verb.name == .multi { client.forgetQueued() }
        if client.keepsNext, !client.isBroadcast, verb.isReadOfKeys {
            for place in verb.keyPlaces(arguments) ?? [] {
                let key = Array(arguments[place])
                if isQueued {
                    // The bytes of a transaction have a limit; one that is refused has no more.
                    if context.connection.session.transaction?.isRefused == false {
                        client.queue(key)
                    }
                } else {
                    note(key, client)
                }
            }
        }
        if verb.isExecution { for key in client.queued { note(key, client) } }
        guard context.connection.session.transaction == nil else { return }
        client.caching = nil
        client.forgetQueued()
    }

    private func note(_ key: [UInt8], _ client: TrackedClient) {
        guard note(key, at: client.revisionBefore, client) else { return }
        if isOverfull { evict(for: client) }
    }

    /// - Returns: Whether the key is new to the client; then the table may have too many.
    @discardableResult
    func note(_ key: [UInt8], at revision: Int64, _ client: TrackedClient) -> Bool {
        let copies = client.copies
        return copies.note(key, at: revision, seat: add(copies, to: key))
    }

    var isOverfull: Bool { itemCount > settings.options.trackedKeyCount }

    /// Takes a key from copies that are void, else from the user of `client`, if it has more than its
    /// share, else from the user that has most.
    ///
    /// - Complexity: O(*n*) in the users.
    func evict(for client: TrackedClient) {
        if let void = leftovers.anyCopies, let key = void.lastKey {
            return remove(key, from: void)
        }
        let share = settings.options.trackedKeyCount / max(1, users.count)
        let loser =
            client.user.itemCount > share
            ? client.user.loser(besides: client)
            : users.values.max { $0.itemCount < $1.itemCount }?.loser(besides: nil)
        guard let loser, let key = loser.copies.anyKey else { return }
        remove(key, from: loser.copies)
        send([key], to: loser)
    }

    // MARK: Commits

    /// Copies that one commit makes void.
    private struct VoidCopies {
        let client: TrackedClient
        /// Nil: all that it has.
        var keys: [[UInt8]]? = []
    }

    private func receive(_ changes: [Record], of revision: Int64, _ core: KeyspaceCore) {
        var void: [Int: VoidCopies] = [:]
        var counts: [UInt32: Int] = [:]
        for change in changes {
            let key = Array(change.key)
            // Whoever may read may keep a copy, which would never be void without this.
            let audience = core.audience(of: change, .read)
            func admits(_ client: TrackedClient) -> Bool {
                audience?.admits(client.connection.subject) ?? true
            }
            func note(_ client: TrackedClient) {
                void[client.connection.number, default: VoidCopies(client: client)].keys?.append(
                    key
                )
            }
            invalidate(key, by: revision, where: admits) { client in
                note(client)
                counts[client.user.uid, default: 0] += 1
                guard counts[client.user.uid] == Tracking.voidCount else { return }
                for client in client.user.clients.values where !client.isBroadcast {
                    leave(client.takeCopies(), client.connection)
                    void[client.connection.number] = VoidCopies(client: client, keys: nil)
                }
            }
            prefixes.forEach(atStartOf: change.key) { followed in
                if admits(followed.client) { note(followed.client) }
            }
        }
        // All copies are void: also those that its client has of its own commits.
        for void in void.values where void.keys == nil || !void.client.leavesOut(revision) {
            send(void.keys, to: void.client)
        }
    }

    /// Takes the copies of a key that a commit makes void out of the table, and calls `body` with the
    /// clients that had them.
    private func invalidate(
        _ key: [UInt8],
        by revision: Int64,
        where admits: (TrackedClient) -> Bool,
        _ body: (TrackedClient) -> Void
    ) {
        guard let place = table.index(forKey: key) else { return }
        let readers = table.values[place]
        var leftCount = 0
        for copies in readers {
            // Void copies leave the table in slices; a commit of many keys meets them for each.
            let client = copies.isVoid ? nil : copies.client
            let effect: TrackedCopies.Effect =
                client.map { admits($0) ? copies.invalidate(key, by: revision) : .none } ?? .none
            if effect != .allVoid {
                // Order matters: only behind copies that go do the others move.
                if table.values[place][leftCount] !== copies {
                    table.values[place][leftCount] = copies
                    copies.move(key, to: leftCount)
                }
                leftCount += 1
            }
            if effect != .none, let client { body(client) }
        }
        guard leftCount < readers.count else { return }
        itemCount -= readers.count - leftCount
        table.values[place].removeLast(readers.count - leftCount)
        if leftCount == 0 { table[key] = nil }
    }

    // MARK: Sending

    /// Sends that copies are void; nil: of everything.
    func send(_ keys: [[UInt8]]?, to client: TrackedClient) {
        let keys = keys.flatMap { $0.count > Tracking.pushedCount ? nil : $0 }
        guard let number = client.redirection else {
            return send(keys, by: client.connection, isRedirected: false)
        }
        guard let target = registry.all[number] else { return informOfEnd(of: number, client) }
        send(keys, by: target, isRedirected: true)
    }

    private func send(_ keys: [[UInt8]]?, by connection: Connection, isRedirected: Bool) {
        let version = connection.session.version
        // A client of RESP2 has to ask for the messages.
        let isAsked = version == .resp3 || isRedirected && Tracking.asksForMessages(connection)
        guard isAsked else { return }
        var frame = ByteBuffer()
        if version == .resp3 {
            frame.writePush(2)
            frame.writeBulk("invalidate")
        } else {
            frame.writeArray(3)
            frame.writeBulk("message")
            frame.writeBulk(Tracking.channel)
        }
        if let keys {
            frame.writeArray(keys.count)
            for key in keys { frame.writeBulk(key) }
        } else {
            frame.writeNullArray(version)
        }
        channels.deliver(frame.bytes, to: connection)
        if version == .resp3, !connection.outbound.held.isEmpty {
            connection.outbound.held.append(frame.bytes)
        }
        flushes.addFirst(connection)
    }

    private static func asksForMessages(_ connection: Connection) -> Bool {
        connection.session.subscriptions[.name][Array(channel.description.utf8)] != nil
    }

    private func informOfEnd(of number: Int, _ client: TrackedClient) {
        guard !client.isBroken else { return }
        client.isBroken = true
        guard client.connection.session.version == .resp3 else { return }
        var frame = ByteBuffer()
        frame.writePush(2)
        frame.writeBulk("tracking-redir-broken")
        frame.writeInteger(Int64(number))
        channels.deliver(frame.bytes, to: client.connection)
    }
}
