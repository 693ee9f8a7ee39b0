import Glibc
import StateClient
import StateModel

/// A watch that outlives its connection: if that is lost, it resumes after the last revision that
/// was delivered.
///
/// While a snapshot is delivered piece by piece, there is no such revision. Then the snapshot
/// starts again, after a gap that says that the earlier pieces are void.
struct ResumedWatch {
    /// How far changes were delivered.
    private enum Position {
        /// Not begun.
        case before(Client.HandlerStart)
        /// All up to a revision of the store with that epoch; nil for the current one.
        case at(revision: Int64, epoch: String?)
        /// Within a snapshot.
        case inState
    }

    // Immutable.
    private let invocation: Invocation
    private let patterns: [Pattern]
    private let options: Options
    private let deadline: Deadline?
    /// Whether the watch ends if nobody reads standard output any more.
    private let needsReader: Bool

    private var client: Client
    /// The connection that claims the handler.
    ///
    /// It has no watch: with one, events would arrive with each answer faster than they are
    /// handled, and would have to be kept here.
    private var control: Client
    private var position: Position
    /// The epoch of the store that is watched.
    private var epoch = ""
    /// The revision after which the daemon sends changes, as it said when the watch began.
    private(set) var revision: Int64 = 0
    /// A gap to deliver next.
    private var gap: Client.Event?
    /// The named handler that gets the changes; nil if there is none.
    private var handler: NamedHandler?

    /// Which changes are delivered, and how.
    struct Options {
        var latest = false
        var previous = false
    }

    /// Connects and begins.
    ///
    /// - Throws: ``Failure/refused(_:)``, also if there is no daemon, unless `--for-daemon` was
    ///   given; ``Failure/negative`` if the deadline passed first.
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
        position = .before(start)
        client = try invocation.firstClient(until: deadline, needsReader: needsReader)
        control = client
        do throws(StateError) {
            try begin()
        } catch {
            guard Self.isLoss(error), invocation.waitsForDaemon else {
                throw Self.end(with: error, deadline)
            }
            guard try reconnect(after: error) else { throw .negative }
        }
    }

    /// The failure of a watch that did not begin.
    static func end(with error: StateError, _ deadline: Deadline?) -> Failure {
        guard isLoss(error), deadline?.hasPassed ?? false else { return .refused(error) }
        Output.report(error.message)
        return .negative
    }

    /// The next event; nil if the deadline passed first.
    ///
    /// The caller must handle all its changes before the next call.
    ///
    /// - Throws: ``Failure/brokenPipe`` if nobody reads any more; ``Failure/refused(_:)``.
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

    /// Reports to the daemon that everything up to a revision is handled; durable when this
    /// returns.
    ///
    /// If the connection is lost, the report is the first request on the next one. If the daemon
    /// cannot store it, the request is repeated until it can.
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
                Output.report("\(error.message); retrying in \(pause.shown)")
                guard try rest(pause) else { return }
            } catch {
                guard try reconnect(after: error) else { return }
            }
        }
    }

    /// Reports the position from time to time if no change matched the handler's patterns.
    mutating func advance(to revision: Int64) throws(Failure) {
        if handler?.isBehind(revision) ?? false { try finish(revision) }
    }

    private var hasEnded: Bool { deadline?.hasPassed ?? false }

    private func receive() -> Result<Client.Event?, StateError> {
        Result { () throws(StateError) in
            try client.nextEvent(
                until: deadline,
                unless: needsReader ? .hangup(STDOUT_FILENO) : nil
            )
        }
    }

    private mutating func note(_ event: Client.Event) {
        switch event {
        case .commit(_, let revision, _):
            // A round of latest values is complete only with its synced event.
            if !options.latest { move(to: revision) }
        case .progress(_, let revision): move(to: revision)
        case .synced(_, let revision): position = .at(revision: revision, epoch: epoch)
        case .gap: position = .inState
        case .piece: if case .before = position { position = .inState }
        case .away, .current: break
        }
    }

    private mutating func move(to revision: Int64) {
        if case .at = position { position = .at(revision: revision, epoch: epoch) }
    }
}

// MARK: Connecting

extension ResumedWatch {
    /// Begins the watch on a new connection, at its position.
    private mutating func begin() throws(StateError) {
        try attach()
        let watch: Client.Watch
        switch position {
        case .before(.now):
            watch = try self.watch()
            position = .at(revision: watch.revision, epoch: watch.epoch)
        case .before(.revision(let revision)):
            watch = try self.watch(from: revision)
            position = .at(revision: revision, epoch: watch.epoch)
        case .before(.snapshot): watch = try self.watch(snapshot: true)
        case .at(let revision, let epoch): watch = try self.watch(from: revision, epoch: epoch)
        case .inState:
            watch = try self.watch(snapshot: true)
            gap = .gap(watch: watch.number, revision: watch.revision)
        }
        epoch = watch.epoch
        revision = watch.revision
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

    /// Claims the handler, and reports what the daemon has not acknowledged yet.
    private mutating func attach() throws(StateError) {
        guard let handler else { return }
        // Order matters: the name is free once the previous connection is closed.
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
            // It was removed meanwhile, or the daemon keeps everything in memory.
            position = .inState
        } else if attachment.currentEpoch == epoch, let owed = handler.owed {
            try control.finishHandling(handler.name, through: owed)
            self.handler?.noteFinished(owed)
        }
        // Do not report revisions of another store to this one: it sends a gap.
        self.handler?.owed = nil
    }

    /// This process attached the handler for the first time.
    private mutating func noteAttached(_ attachment: Client.Attachment) {
        handler?.isAttached = true
        handler?.noteFinished(attachment.position ?? 0)
        if let revision = attachment.position {
            position = .at(revision: revision, epoch: attachment.epoch)
        } else {
            // An earlier process may have handled a part of the snapshot.
            position = attachment.isNew ? .before(.snapshot) : .inState
        }
    }

    /// Tries to connect until there is a daemon, and resumes.
    ///
    /// Returns false if the deadline passed first.
    private mutating func reconnect(after loss: StateError) throws(Failure) -> Bool {
        guard Self.isLoss(loss) else { throw .refused(loss) }
        if hasEnded { return false }
        Output.report("\(loss.message); reconnecting")
        var backOff = BackOff(first: .milliseconds(50), last: .seconds(2))
        while try rest(backOff.next()) {
            do throws(StateError) {
                client = try invocation.newClient(until: deadline)
                try begin()
                Output.report("reconnected")
                return true
            } catch {
                guard Self.isLoss(error) else { throw .refused(error) }
            }
        }
        return false
    }

    /// Whether another attempt may succeed.
    static func isLoss(_ error: StateError) -> Bool {
        switch error.code {
        case .unreachable, .outcomeUnknown: true
        // The daemon has too many clients, or cannot write at the moment.
        case .limit, .readOnly, .noSpace: true
        default: false
        }
    }

    /// Waits for so long.
    ///
    /// Returns false if the deadline passed first.
    private func rest(_ pause: Duration) throws(Failure) -> Bool {
        try Pause.rest(pause, until: deadline, needsReader: needsReader)
    }
}
