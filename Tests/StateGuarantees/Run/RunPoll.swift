import StateClient
import StateTestSupport
import StateWire

/// The same as ``RunSession`` for who asks with STATE.CHANGES, again and again from where the last reply ended.
///
/// It is recorded as the watch that it stands for: the replies' commits, their `next` as bookmarks, the state of a gap as
/// pieces that are closed at once.
struct RunPoll {
    private let socketPath: String
    private let board: RunBoard
    private var random: SplitMix
    private var next: Int64 = 0
    private var epoch: String?

    init(_ socketPath: String, _ board: RunBoard, _ seed: UInt64) {
        self.socketPath = socketPath
        self.board = board
        random = SplitMix(seed: seed)
    }

    /// Asks until the poller goes away or the connection is lost; where there is a last revision of all, until that has come.
    ///
    /// - Returns: Whether the connection was lost.
    mutating func run(_ session: inout WatchSession, _ last: Int64?) throws -> Bool {
        guard case .from(let revision, let epoch) = session.request.start else {
            preconditionFailure("a poller begins after a revision")
        }
        (next, self.epoch) = (revision, epoch)
        let usesRESP3 = random.chance(50)
        guard let connection = try RunConnection(socketPath, usesRESP3: usesRESP3) else {
            return true
        }
        // No reply tells the present; a revision that some reply told before is none of the future.
        let isKnown = revision <= board.revision + 500_000_000
        session.reply = .init(
            revision: isKnown ? max(revision, board.revision) : board.revision,
            epoch: session.epoch
        )
        var callCount = Int.random(in: 1...40, using: &random)
        let deadline = Deadline(after: RunWatcher.patience)
        while last != nil || callCount > 0, !board.hasFault {
            guard let reply = try connection.ask(command(session.request)) else { return true }
            try take(reply, &session)
            if let last {
                if session.hasReached(last) { return false }
                guard !deadline.hasPassed else {
                    session.end = .silent(last)
                    return false
                }
            } else {
                if random.chance(20) {
                    pause(milliseconds: Int.random(in: 1...1_000, using: &random))
                }
                if board.stage.current.lastRevision != nil { return false }
            }
            callCount -= 1
        }
        return false
    }

    private mutating func command(_ request: WatchSession.Request) -> [[UInt8]] {
        var words = ["STATE.CHANGES", "SINCE", "\(next)"]
        if let epoch { words += ["EPOCH", epoch] }
        if random.chance(40) { words += ["COUNT", "\(Int.random(in: 1...20, using: &random))"] }
        if random.chance(60) { words += ["BLOCK", "\(Int.random(in: 1...500, using: &random))"] }
        return (words + request.patterns.map(\.text)).bytes
    }

    private mutating func take(_ reply: Reply, _ session: inout WatchSession) throws {
        guard let parts = reply.elements, parts.count >= 3, let told = parts[1].integerValue,
            let items = parts[2].elements?.compactMap(\.elements)
        else { throw SystemFailure("STATE.CHANGES: \(reply)") }
        switch parts[0].textValue {
        case "ok":
            for item in items {
                guard let revision = item[0].integerValue,
                    let changes = item[1].elements?.compactMap(\.elements)
                else { throw SystemFailure("STATE.CHANGES: \(item)") }
                let event = WatchSession.Event.change(
                    revision,
                    changes.compactMap(WatchSession.Change.init)
                )
                session.events.append(event)
            }
            if told != next || session.events.isEmpty { session.events.append(.progress(told)) }
        case "gap":
            session.events += [
                .gap(told, compacted: board.compacted),
                .pieces(items.compactMap(WatchSession.Piece.init)), .synced(told),
            ]
            // The epoch that was not this store's has been answered.
            if epoch != nil { epoch = session.epoch }
        default: throw SystemFailure("STATE.CHANGES: \(reply)")
        }
        next = told
    }
}
