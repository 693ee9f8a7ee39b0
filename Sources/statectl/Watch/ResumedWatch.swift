import Glibc
import StateClient
import StateModel

/// A watch that outlives its connection: where that is lost it is begun anew, at the revision after the last one told.
///
/// While the state is told, piece by piece, there is no such revision: the state is told from its beginning then, behind a
/// gap, for what is void has to be said.
struct ResumedWatch {
    /// How far it has been told.
    private enum Standing {
        /// Not begun.
        case before(Client.HandlerStart)
        /// All up to a revision of the store with that epoch; nil for the one that is there.
        case at(revision: Int64, epoch: String?)
        /// A part of the state.
        case inState
    }

    // Immutable.
    private let invocation: Invocation
    private let patterns: [Pattern]
    private let options: Options
    private let deadline: Deadline?
    /// Whether it ends when nobody reads standard output any more.
    private let needsReader: Bool

    private var client: Client
    /// The connection that has the handler, without a watch: behind one, each answer would bring more events than are handled
    /// meanwhile, all of them to be kept here.
    private var control: Client
    private var standing: Standing
    /// The epoch of the store that is watched.
    private var epoch = ""
    /// A gap that is to be told next.
    private var gap: Client.Event?
    /// The handler that the changes are for; nil where they are for nobody whom the daemon knows.
    private var handler: NamedHandler?

    /// What is told, and how.
    struct Options {
        var latest = false
        var previous = false
    }

    /// Connects and begins.
    ///
    /// - Throws: ``Failure/refused(_:)``, also where there is no daemon: only a connection that was there is made again;
    ///   ``Failure/negative`` where the deadline passed first.
    init(
        _ invocation: Invocation,
        _ patterns: [Pattern],
        from start: Client.HandlerStart,
        _ options: Options = Options(),
        for handler: NamedHandler? = nil,
        until deadline: Deadline?,
        needsReader: Bool
    ) throws(Failure) {
        self.invocation = invocation
        self.patterns = patterns
        self.options = options
        self.deadline = deadline
        self.needsReader = needsReader
        self.handler = handler
        standing = .before(start)
        do throws(StateError) {
            client = try invocation.newClient(until: deadline)
            control = client
            try begin()
        } catch {
            guard Self.isLoss(error), deadline?.hasPassed ?? false else { throw .refused(error) }
            Output.report(error.message)
            throw .negative
        }
    }

    /// The next event; nil where the deadline passed first.
    ///
    /// All that it tells of has to be handled before the next call.
    ///
    /// - Throws: ``Failure/brokenPipe`` where nobody reads any more; ``Failure/refused(_:)``.
    mutating func next() throws(Failure) -> Client.Event? {
        while true {
            if let gap {
                self.gap = nil
                return gap
            }
            switch receive() {
            case .success(let event?):
                note(event)
                return event
            case .success(nil):
                guard hasEnded else { throw .brokenPipe }
                return nil
            case .failure(let loss):
                guard try reconnect(after: loss) else { return nil }
            }
        }
    }

    /// Has the daemon note that everything up to a revision is handled; it is durable when this returns.
    ///
    /// Where the connection is lost, the daemon is told before anything else once there is one again. Where it cannot
    /// store it, it is asked again until it can.
    mutating func finish(_ revision: Int64) throws(Failure) {
        guard let name = handler?.name else { return }
        handler?.owed = revision
        var backOff = BackOff(first: .milliseconds(100), last: .seconds(30))
        while handler?.owed != nil, !hasEnded {
            do throws(StateError) {
                try control.finishHandling(name, through: revision)
                handler?.noteFinished(revision)
            } catch  where error.code == .readOnly || error.code == .noSpace {
                let pause = backOff.next()
                Output.report("\(error.message); it is told again in \(pause.shown)")
                guard try rest(pause) else { return }
            } catch {
                guard try reconnect(after: error) else { return }
            }
        }
    }

    /// Where nothing was told for the handler's patterns: has the daemon note how far it is, now and then.
    mutating func advance(to revision: Int64) throws(Failure) {
        if handler?.isBehind(revision) ?? false { try finish(revision) }
    }

    private var hasEnded: Bool { deadline?.hasPassed ?? false }

    private func receive() -> Result<Client.Event?, StateError> {
        Result { () throws(StateError) in
            try client.nextEvent(until: deadline, orHangupOf: needsReader ? STDOUT_FILENO : nil)
        }
    }

    private mutating func note(_ event: Client.Event) {
        switch event {
        case .commit(_, let revision, _):
            // A round of latest values is whole with its synced.
            if !options.latest { move(to: revision) }
        case .progress(_, let revision): move(to: revision)
        case .synced(_, let revision): standing = .at(revision: revision, epoch: epoch)
        case .gap: standing = .inState
        case .piece: if case .before = standing { standing = .inState }
        }
    }

    private mutating func move(to revision: Int64) {
        if case .at = standing { standing = .at(revision: revision, epoch: epoch) }
    }
}

// MARK: Connecting

extension ResumedWatch {
    /// Begins the watch on a new connection, at the place where it stands.
    private mutating func begin() throws(StateError) {
        try attach()
        let watch: Client.Watch
        switch standing {
        case .before(.now):
            watch = try self.watch()
            standing = .at(revision: watch.revision, epoch: watch.epoch)
        case .before(.revision(let revision)):
            watch = try self.watch(from: revision)
            standing = .at(revision: revision, epoch: watch.epoch)
        case .before(.snapshot): watch = try self.watch(snapshot: true)
        case .at(let revision, let epoch): watch = try self.watch(from: revision, epoch: epoch)
        case .inState:
            watch = try self.watch(snapshot: true)
            gap = .gap(watch: watch.number, revision: watch.revision)
        }
        epoch = watch.epoch
    }

    private func watch(
        snapshot: Bool = false,
        from revision: Int64? = nil,
        epoch: String? = nil
    ) throws(StateError) -> Client.Watch {
        try client.watch(
            patterns,
            snapshot: snapshot,
            from: revision,
            epoch: epoch,
            latest: options.latest,
            previous: options.previous
        )
    }

    /// Claims the handler, and tells the daemon what it has not heard yet.
    private mutating func attach() throws(StateError) {
        guard let handler else { return }
        // Order matters: the name is free once the connection of before is closed.
        control = client
        control = try invocation.newClient(until: deadline)
        let attachment = try control.attachHandler(
            handler.name,
            patterns,
            from: handler.isAttached ? .snapshot : handler.start,
            isReset: handler.isReset && !handler.isAttached
        )
        guard handler.isAttached else { return noteAttached(attachment) }
        if attachment.isNew {
            // It was forgotten meanwhile, or the daemon keeps everything in memory.
            standing = .inState
        } else if attachment.currentEpoch == epoch, let owed = handler.owed {
            try control.finishHandling(handler.name, through: owed)
            self.handler?.noteFinished(owed)
        }
        // What was handled of another store is nothing to tell this one: its gap comes.
        self.handler?.owed = nil
    }

    /// This process has the handler for the first time.
    private mutating func noteAttached(_ attachment: Client.Attachment) {
        handler?.isAttached = true
        handler?.noteFinished(attachment.position ?? 0)
        if let position = attachment.position {
            standing = .at(revision: position, epoch: attachment.epoch)
        } else {
            // Somebody may have had a part of the state.
            standing = attachment.isNew ? .before(.snapshot) : .inState
        }
    }

    /// Connects until there is a daemon, and goes on there; false where the deadline passed first.
    private mutating func reconnect(after loss: StateError) throws(Failure) -> Bool {
        guard Self.isLoss(loss) else { throw .refused(loss) }
        if hasEnded { return false }
        Output.report("\(loss.message); connecting again")
        var backOff = BackOff(first: .milliseconds(50), last: .seconds(2))
        while try rest(backOff.next()) {
            do throws(StateError) {
                client = try invocation.newClient(until: deadline)
                try begin()
                Output.report("connected again")
                return true
            } catch {
                guard Self.isLoss(error) else { throw .refused(error) }
            }
        }
        return false
    }

    /// Whether another attempt may do better.
    private static func isLoss(_ error: StateError) -> Bool {
        switch error.code {
        case .unreachable, .outcomeUnknown: true
        // It has too many clients, or cannot write, for now.
        case .limit, .readOnly, .noSpace: true
        default: false
        }
    }

    /// Waits for so long; false where the deadline passed first.
    private func rest(_ pause: Duration) throws(Failure) -> Bool {
        try Pause.rest(pause, until: deadline, needsReader: needsReader)
    }
}
