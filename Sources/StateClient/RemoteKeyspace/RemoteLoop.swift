import StateModel
import StateWire

/// The thread of a ``RemoteKeyspace``: connects, sends requests, delivers events and answers.
///
/// One turn of the loop is ``turn()``. Only this thread uses any of it. Events and answers are
/// delivered in the order in which they arrive: this keeps the daemon's promise that a commit is
/// delivered before it is answered.
final class RemoteLoop {
    private let link: RemoteLink
    var session: RemoteSession?
    /// The socket of the first connection, and of all others: elsewhere is another store.
    private var chosen: SocketLocation.Choice?
    /// HELLO was answered: requests can be sent.
    var isReady = false
    /// The epoch of the daemon's store, as this connection reported it.
    private var epoch = Epoch(bits: 0)
    private var backOff = BackOff()
    /// When HELLO must be answered.
    private var helloDeadline: Deadline?
    /// Why there is no connection; nil if there is one, or if it is not known yet.
    var absence: StateError?

    /// What the daemon calls the keys that live as long as the connection; nil if there are none.
    private var claim: String?
    /// Whether this connection has asked for that.
    private var hasClaimed = false

    /// Requests that no session has taken.
    private var waiting = FirstInFirstOut<RemoteCall>()
    /// No call has an earlier deadline; nil: no call has one.
    private var earliest: Deadline?
    var watches: [ObjectIdentifier: WatchedKeys] = [:]
    /// The daemon's watches on this connection, by number.
    var wires: [Int64: WireWatch] = [:]

    init(_ link: RemoteLink) { self.link = link }

    func run() {
        while turn() {}
        end()
    }

    // MARK: The turn

    private func turn() -> Bool {
        let work = link.takeWork()
        guard !work.isClosing else {
            for call in work.calls { waiting.append(call) }
            return false
        }
        for call in work.calls { take(call) }
        for watch in work.watches.values { attend(to: watch) }
        if work.isReleased, waiting.isEmpty, session?.hasCalls != true { return false }
        if session == nil, backOff.isOver { connect() }
        do throws(Loss) {
            if isReady {
                // Order matters: a connection with keys of its own cannot claim others.
                if work.needsClaim, !hasClaimed { askForClaim() }
                sendWaiting()
            }
            try session?.flush()
            try expire()
            if wait(), let session { try receive(session) }
            if let helloDeadline, helloDeadline.hasPassed { throw .timedOut }
        } catch {
            lose(error)
        }
        return true
    }

    private func wait() -> Bool {
        let deadlines = [earliest, helloDeadline, session == nil ? backOff.end : nil]
        let first = deadlines.compactMap { $0 }.min()
        return link.wakeup.wait(
            socket: session?.descriptor ?? -1,
            toSend: session?.hasOutput ?? false,
            milliseconds: first?.millisecondsLeft ?? -1
        )
    }

    private func receive(_ session: RemoteSession) throws(Loss) {
        // Events that a receiver is slow to take wait in the socket, and then in the daemon, which
        // limits them.
        try session.receive()
        while let reply = try session.next() {
            if case .push = reply {
                try take(push: reply)
            } else {
                try take(reply, session.popAwaited())
            }
        }
    }

    private func take(_ reply: Reply, _ awaited: RemoteSession.Awaited) throws(Loss) {
        if let take = awaited.take {
            try take(reply)
        } else if let call = awaited.call {
            finish(call, awaited, reply)
        } else {
            link.forget(byteCount: awaited.byteCount)
        }
    }

    /// Answers a call once every watch has delivered its commit; until then it counts as waiting.
    ///
    /// The daemon pushes a commit before it answers, except to a watch that is catching up, which
    /// gets the state later. An answer for less than stable storage may come earlier, and for a
    /// commit that is never delivered.
    private func finish(
        _ call: RemoteCall,
        _ awaited: RemoteSession.Awaited,
        _ reply: Reply
    ) {
        let isStored = reply["durability"]?.textValue != Durability.memory.description
        if let number = reply["revision"]?.integerValue, !call.changedKeys.isEmpty,
            let watch = watches.values.first(where: {
                (isStored || $0.isCatchingUp)
                    && $0.misses(call.changedKeys, at: Revision(epoch: epoch, number: number))
            })
        {
            let (path, timeout) = (session?.path ?? "", Quantity.text(call.timeout))
            let failure =
                "the daemon committed revision \(number), but did not deliver it to this process "
                + "within \(timeout) (\(path))"
            watch.hold(
                WatchedKeys.HeldAnswer(
                    revision: number,
                    deadline: awaited.deadline,
                    body: { [unowned self] in finish(call, awaited, reply) },
                    expire: { [link] in
                        link.forget(byteCount: awaited.byteCount)
                        call.fail(failure, isSent: true)
                    }
                )
            )
            note(awaited.deadline)
        } else {
            link.forget(byteCount: awaited.byteCount)
            call.finish(.success(reply))
        }
    }

    // MARK: Requests

    private func take(_ call: RemoteCall) {
        if let absence, call.patience == nil {
            refuse(call, absence)
            return
        }
        note(call.deadline)
        waiting.append(call)
    }

    private func refuse(_ call: RemoteCall, _ error: StateError) {
        link.forget(byteCount: call.request.count)
        call.finish(.failure(error))
    }

    private func note(_ deadline: Deadline) { earliest = min(earliest ?? deadline, deadline) }

    private func sendWaiting() {
        guard let session else { return }
        while session.hasRoom, let call = waiting.popFirst() {
            session.send(call)
            note(Deadline(after: call.timeout))
        }
    }

    private func expire() throws(Loss) {
        guard let earliest, earliest.hasPassed else { return }
        self.earliest = nil
        for call in waiting.take(where: { $0.deadline.hasPassed }) {
            link.forget(byteCount: call.request.count)
            call.fail(absence?.message ?? "the request could not be sent in time", isSent: false)
        }
        waiting.update { note($0.deadline) }
        for watch in watches.values {
            if let next = watch.expireHeld() { note(next) }
        }
        if let next = try session?.expire() { note(next) }
    }

    /// Sends one of the connection's own requests.
    func ask(
        _ request: RequestWriter,
        _ session: RemoteSession,
        _ take: @escaping (Reply) throws(Loss) -> Void
    ) {
        session.send(request, within: link.timeout, take)
        note(Deadline(after: link.timeout))
    }

    // MARK: The connection

    private func connect() {
        do throws(StateError) {
            let session = try RemoteSession(choice())
            self.session = session
            helloDeadline = Deadline(after: link.timeout)
            backOff.noteAttempt()
            greet(session)
        } catch {
            backOff.noteAttempt()
            noteAbsence(error)
        }
    }

    private func choice() throws(StateError) -> SocketLocation.Choice {
        if let chosen { return chosen }
        return try SocketLocation.process.clientChoice(option: link.socket)
    }

    private func greet(_ session: RemoteSession) {
        var request = RequestWriter()
        request.appendHello(link.name)
        ask(request, session) { (reply) throws(Loss) in
            if case .error(let error) = reply { throw .refused(error) }
        }
        request.removeAll()
        request.append(words: "STATE.STATUS")
        ask(request, session) { [unowned self] (reply) throws(Loss) in
            guard let epoch = reply["epoch"]?.textValue.flatMap({ Epoch($0) }) else {
                throw .malformed("the server is not stated: its STATE.STATUS has no epoch")
            }
            begin(epoch)
        }
    }

    /// Takes over the keys of the connection before, or asks what those of this one are called.
    private func askForClaim() {
        guard let session else { return }
        hasClaimed = true
        var request = RequestWriter()
        request.append(words: "STATE.CLAIM" + (claim.map { " " + $0 } ?? ""))
        ask(request, session) { [unowned self] (reply) throws(Loss) in
            claim = reply["claim"]?.textValue ?? claim
        }
    }

    private func begin(_ epoch: Epoch) {
        isReady = true
        chosen = session?.socket
        self.epoch = epoch
        helloDeadline = nil
        absence = nil
        backOff.noteSuccess()
        link.note(.connected, epoch: epoch)
        for watch in watches.values { advance(watch) }
    }

    /// Discards the connection.
    private func lose(_ loss: Loss) {
        guard let session else { return }
        self.session = nil
        (isReady, hasClaimed) = (false, false)
        helloDeadline = nil
        backOff.begin()
        wires = [:]
        for watch in watches.values { watch.forgetWires() }
        let sentence = "\(loss) (\(session.path))"
        noteAbsence(StateError(.unreachable, sentence))
        for (awaited, isSent) in session.end() where awaited.take == nil {
            link.forget(byteCount: awaited.byteCount)
            awaited.call?.fail(sentence, isSent: isSent)
        }
    }

    /// Order matters: a caller whose request fails can already read that the daemon is unavailable.
    private func noteAbsence(_ error: StateError) {
        absence = error
        link.note(.away(error))
        for watch in watches.values { watch.reportAway(error) }
        for call in waiting.take(where: { $0.patience == nil }) { refuse(call, error) }
    }

    private func end() {
        let error = RemoteLink.closed
        link.note(.closed)
        if session != nil { lose(.ended) }
        // Includes requests that arrived after the last turn.
        let rest = link.takeWork()
        for call in waiting.take(where: { _ in true }) + rest.calls { refuse(call, error) }
        for watch in Array(watches.values) + rest.watches.values { watch.reportAway(error) }
    }
}
