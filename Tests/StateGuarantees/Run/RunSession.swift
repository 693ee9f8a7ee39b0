import StateClient
import StateTestSupport
import StateWire

/// One STATE.WATCH of a watcher, from the connection to its end.
struct RunSession {
    private let socketPath: String
    private let board: RunBoard
    private var random: SplitMix
    private var watch: Int64 = 0

    init(_ socketPath: String, _ board: RunBoard, _ seed: UInt64) {
        self.socketPath = socketPath
        self.board = board
        random = SplitMix(seed: seed)
    }

    /// Asks for what `session` says and records what comes, until the watcher goes away or the connection is lost;
    /// where there is a last revision of all, until that has come.
    ///
    /// - Returns: Whether the connection was lost.
    mutating func run(_ session: inout WatchSession, _ last: Int64?) throws -> Bool {
        guard let connection = try RunConnection(socketPath) else { return true }
        guard let reply = try connection.ask(session.request.words.bytes) else { return true }
        guard let watch = reply["watch"]?.integerValue,
            let revision = reply["revision"]?.integerValue,
            let epoch = reply["epoch"]?.textValue
        else { throw SystemFailure("\(session.request.words) was answered with \(reply)") }
        guard epoch == session.epoch else {
            throw SystemFailure("the epoch was \(session.epoch) and is \(epoch)")
        }
        self.watch = watch
        session.reply = .init(revision: revision, epoch: epoch)
        if let last { return try awaitCommit(last, connection, &session) }
        guard try follow(connection, &session) else { return true }
        return try leave(connection, &session)
    }

    /// Reads and stalls for a while.
    ///
    /// - Returns: Whether the connection still stands.
    private mutating func follow(
        _ connection: RunConnection,
        _ session: inout WatchSession
    ) throws -> Bool {
        let isWide = session.request.patterns == ["/"]
        // Some last until bookmarks come by themselves.
        let count = Int.random(in: 1...(random.chance(10) ? 60 : 6), using: &random)
        for _ in 0..<count {
            // Whoever is to be blocked needs some megabytes behind it.
            let longest = random.chance(isWide ? 40 : 10) ? 6_000 : 300
            if random.chance(50) {
                pause(milliseconds: Int.random(in: 1...longest, using: &random))
            }
            let deadline = Deadline(after: .milliseconds(Int.random(in: 1...800, using: &random)))
            while !deadline.hasPassed {
                guard try take(connection, &session, within: 50) != .ended else { return false }
            }
            if board.hasFault || board.stage.current.lastRevision != nil { break }
        }
        return true
    }

    /// Goes away: at once, by STATE.UNWATCH, or after it has been told of all that was answered by now.
    private mutating func leave(
        _ connection: RunConnection,
        _ session: inout WatchSession
    ) throws -> Bool {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<40: break
        case ..<60:
            let publishedCount = session.events.count
            guard connection.send([["STATE.UNWATCH", "\(watch)"].bytes]) else { return true }
            while true {
                switch try take(connection, &session, within: 60_000) {
                case .event: continue
                case .answer(.simple("OK")):
                    // A watch that ends before it is current says by a gap that it has not told all.
                    if session.events.count > publishedCount, case .gap? = session.events.last {
                        session.events.removeLast()
                    }
                    return false
                case .ended: return true
                case .answer(let reply): throw SystemFailure("STATE.UNWATCH: \(reply)")
                case .nothing: throw SystemFailure("no answer to STATE.UNWATCH in 60 s")
                }
            }
        default:
            guard let last = board.lastRevision(matching: session.request.patterns) else { break }
            return try awaitCommit(last, connection, &session)
        }
        connection.end()
        return false
    }

    /// Reads until a commit has come; where it does not, that is how the session ends.
    private mutating func awaitCommit(
        _ last: Int64,
        _ connection: RunConnection,
        _ session: inout WatchSession
    ) throws -> Bool {
        let deadline = Deadline(after: RunWatcher.patience)
        while !session.hasReached(last), !session.isCurrent(at: last) {
            guard try take(connection, &session, within: 50) != .ended else { return true }
            guard !deadline.hasPassed else {
                session.end = .silent(last)
                return false
            }
            if board.hasFault { return false }
        }
        return false
    }

    private enum Taken: Equatable {
        case event
        case answer(Reply)
        case nothing
        case ended
    }

    /// Takes what comes next, and records it where it is a push.
    private func take(
        _ connection: RunConnection,
        _ session: inout WatchSession,
        within milliseconds: Int32
    ) throws -> Taken {
        switch try connection.next(within: milliseconds) {
        case .nothing: return .nothing
        case .ended: return .ended
        case .reply(.push(let parts)):
            let event = WatchSession.Event(parts, of: watch, session.request)
            guard let event else { throw SystemFailure("a push that no watch makes: \(parts)") }
            if case .gap(let revision, _) = event {
                session.events.append(.gap(revision, compacted: board.compacted))
            } else {
                session.events.append(event)
            }
            return .event
        case .reply(let reply): return .answer(reply)
        }
    }
}

extension WatchSession {
    /// Whether nothing need come, the watch having begun at this revision.
    fileprivate func isCurrent(at revision: Int64) -> Bool {
        guard events.isEmpty, let reply else { return false }
        switch request.start {
        case .now: return reply.revision >= revision
        case .snapshot: return false
        case .from(let from, _): return from >= revision && from <= reply.revision
        }
    }
}

extension WatchSession.Event {
    /// What a push says; nil where it is none of this watch.
    fileprivate init?(_ parts: [Reply], of watch: Int64, _ request: WatchSession.Request) {
        guard parts.count >= 3, parts[1].integerValue == watch,
            let revision = parts[2].integerValue
        else { return nil }
        switch (parts[0].textValue, parts.count) {
        case ("state.synced", 3): self = .synced(revision)
        case ("state.gap", 3): self = .gap(revision)
        case ("state.progress", 3): self = .progress(revision)
        case ("state.change", 4):
            guard let items = parts[3].elements?.compactMap(\.elements) else { return nil }
            if revision == 0 {
                let pieces = items.compactMap(WatchSession.Piece.init)
                guard pieces.count == items.count else { return nil }
                self = .pieces(pieces)
            } else {
                let count = request.includesPrevious ? 3 : 2
                let changes = items.filter { $0.count == count }
                    .compactMap(WatchSession.Change.init)
                guard changes.count == items.count else { return nil }
                self = .change(revision, changes)
            }
        default: return nil
        }
    }
}

extension WatchSession.Change {
    /// A key, its value and, where it was asked for, what that replaced.
    init?(_ parts: [Reply]) {
        guard let key = parts[0].textValue else { return nil }
        self.init(key, parts[1].valueName(key))
        guard parts.count > 2 else { return }
        previous = parts[2].valueName(key).map { .value($0) } ?? .absent
    }
}

extension WatchSession.Piece {
    /// A key, its value and its revision.
    init?(_ parts: [Reply]) {
        guard parts.count == 3, let key = parts[0].textValue, let revision = parts[2].integerValue
        else { return nil }
        self.init(key, parts[1].valueName(key), revision)
    }
}

extension Reply {
    /// The write that a value of a key names; nil where there is none.
    func valueName(_ key: String) -> String? { byteValue.map { RunValue.name(of: $0, key: key) } }
}
