import CLinux
import Observation
import StateEngine

/// Keeps a live query current: takes in complete commits as the keyspace delivers them, and
/// computes the rows when somebody reads them, or else on another thread.
///
/// A keyspace delivers a commit before its write returns. So who reads the rows after a write has
/// its commit in the inbox, or in the rows.
///
/// Until the rows are computed it keeps one change for each key, however many commits arrive.
///
/// Who follows ``rows`` must retain this object, which follows the keyspace.
final class QueryFeed<Value: Codable & Sendable>: NotifierJob, Observable {
    private struct Inbox {
        var arrived = ArrivedChanges()
        var absence: StateError?
        /// Whether the notifier has this job.
        var isScheduled = false
        /// Whether something arrived since the job began.
        var hasNews = false

        /// - Returns: Whether the rows may change.
        mutating func take(_ event: KeyspaceEvent) -> Bool {
            switch event {
            case .commit(let revision, let changes, _):
                arrived.add(changes, at: revision)
            case .state(let revision, _, let changes):
                absence = nil
                arrived = ArrivedChanges(state: changes, at: revision)
            case .resumed:
                absence = nil
                return false
            case .away(let error), .refused(_, let error):
                absence = error
                return false
            }
            return true
        }

        /// - Returns: Whether the caller must give the job to the notifier.
        mutating func schedule() -> Bool {
            defer { (isScheduled, hasNews) = (true, true) }
            return !isScheduled
        }
    }

    private let query: StateQuery<Value>
    private let registrar = ObservationRegistrar()
    private let inbox = StateLock(Inbox())
    /// Held while changes are taken from the inbox and shown: one thread after the other, and who
    /// waits for it reads what the other has shown.
    private let shown: StateLock<any ShownRows<Value>>
    /// The rows; scopes do not divide them.
    let rows: MonitoredContainer<QueryRows<Value>, StateError>
    /// Set by `init`, and nil only in it.
    private let watch = StateLock<(any KeyspaceWatch)?>(nil)
    /// Answered once there are rows, or an error.
    let loading = Answer()

    /// Follows the entries of a query; its rows may not have arrived yet.
    ///
    /// - Throws: ``StateError/Code/invalidRequest`` if the type of the rows has a rule that nobody
    ///   checks.
    init(_ query: StateQuery<Value>, in keyspace: any Keyspace) throws(StateError) {
        try TypeFacts.checkRules(of: Value.self, for: .queryName)
        self.query = query
        let core = StateCore.inMemory(
            QueryRows<Value>(),
            key: .queryName,
            isDirect: false,
            isTracked: false
        )
        let codec = query.codec.adapted(to: keyspace)
        shown = StateLock(AllRows(query, codec, ownsObjects: core.ownsObjects))
        rows = MonitoredContainer(core: core, check: nil)
        // The keyspace retains the watch's closure, so that must not retain this object.
        let begun = keyspace.watch { [weak self] event in self?.receive(event) }
        watch.withLock { $0 = begun }
        // A keyspace of this process has the entries: a page is read there, and nothing else copied.
        let local = query.isPage ? begun as? LocalWatch : nil
        if query.isPage {
            shown.withLock { $0 = KeyPage(query, codec, in: local, ownsObjects: core.ownsObjects) }
        }
        if let local {
            local.count(query.pattern)
            inbox.withLock { $0.arrived.add([], at: Revision(epoch: keyspace.epoch, number: 0)) }
            catchUp()
        } else {
            begun.include([query.pattern])
        }
    }

    deinit { watch.withLock { $0 }?.cancel() }

    // MARK: Reading

    /// The rows with all commits that were delivered before the call.
    var current: QueryRows<Value> {
        catchUp()
        rows.ownCore.track(\.self)
        return rows.ownCore.read()
    }

    /// The row of a key, wherever offset and limit are.
    func row(for key: Key) -> QueryRow<Value>? { reading { shown, _ in shown.row(for: key) } }

    var unreadable: [Key: StateError] { reading { shown, _ in shown.unreadable } }

    func sum<Number: AdditiveArithmetic & Sendable>(
        _ path: any KeyPath<Value, Number> & Sendable
    ) -> Number {
        reading { shown, gone in shown.sum(path, &gone) }
    }

    var absence: StateError? {
        registrar.access(self, keyPath: \.absence)
        return inbox.withLock { $0.absence }
    }

    /// For the Observation library: everything that a commit may change beside the rows, which a
    /// limit divides from the others.
    private var entries: Void { () }

    /// Reads of what is shown, beside the rows; values that may go are added to the array.
    private func reading<R: Sendable>(
        _ body: (inout any ShownRows<Value>, _ gone: inout [any Sendable]) -> R
    ) -> R {
        catchUp()
        registrar.access(self, keyPath: \.entries)
        var gone: [any Sendable] = []
        defer { withExtendedLifetime(gone) {} }
        return shown.withLock { body(&$0, &gone) }
    }

    // MARK: The keyspace's side

    /// Takes in an event of the keyspace.
    ///
    /// The rows follow at the next read, or on the notifier; on this thread if an observer asks for
    /// that. This thread must not wait for the keyspace, and nothing here does.
    func receive(_ event: KeyspaceEvent) {
        // A body, which cannot be called into, runs if it submits to the keyspace.
        let isInline = rows.registration.queue.listeners.hasInline && clinux_body() == nil
        let (isNews, schedules, before, absence) = inbox.withLock { inbox in
            let before = inbox.absence
            let isNews = inbox.take(event)
            return (isNews, isNews && !isInline && inbox.schedule(), before, inbox.absence)
        }
        if before != absence { registrar.withMutation(of: self, keyPath: \.absence) {} }
        if isNews, isInline {
            show()
        } else if schedules {
            Notifier.shared.run(self)
        } else if !isNews, let absence {
            loading.putFirst(.failure(absence))
        }
    }

    var subject: (key: Key, who: String) { (.queryName, "\(query.pattern)") }

    /// Shows what has arrived; later changes wait behind the listeners.
    func run() {
        inbox.withLock { $0.hasNews = false }
        show()
        let goesOn = inbox.withLock { inbox in
            inbox.isScheduled = inbox.hasNews
            return inbox.hasNews
        }
        if goesOn { Notifier.shared.run(self) }
    }

    /// Shows what has arrived, and delivers it, whoever has shown it.
    private func show() {
        catchUp()
        rows.ownCore.drain()
        registrar.withMutation(of: self, keyPath: \.entries) {}
    }

    // MARK: The rows

    /// Shows everything that has arrived; its delivery is left to who has brought it.
    ///
    /// Order, filter and codec of the query run on this thread.
    func catchUp() {
        rows.ownCore.checkBody()
        // Released after the lock: the `deinit` of an object in a row may use the query.
        var gone: [any Sendable] = []
        let hasArrived = shown.withLock { shown in
            let arrived = inbox.withLock { inbox in
                defer { inbox.arrived = ArrivedChanges() }
                return inbox.arrived
            }
            guard !arrived.isEmpty else { return false }
            guard shown.take(arrived, &gone) || loading.result == nil else { return true }
            if rows.ownCore.ownsObjects { gone.append(rows.ownCore.read()) }
            rows.ownCore.publish(shown.rows)
            return true
        }
        withExtendedLifetime(gone) {}
        if hasArrived { loading.putFirst(.success(0)) }
    }
}

/// What a keyspace has delivered and a query does not show yet.
struct ArrivedChanges {
    /// All entries, before `changes`; nil if the changes are those of the entries shown.
    private(set) var state: [KeyspaceChange]?
    /// The last change of each key.
    private(set) var changes: [Key: KeyspaceChange] = [:]
    private(set) var epoch = Epoch(bits: 1)
    private(set) var isEmpty = true

    init() {}

    init(state: [KeyspaceChange], at revision: Revision) {
        self.state = state
        add([], at: revision)
    }

    mutating func add(_ changes: [KeyspaceChange], at revision: Revision) {
        isEmpty = false
        epoch = revision.epoch
        for change in changes { self.changes[change.key] = change }
    }
}

extension StateCore {
    /// Publishes a value that this process has computed; its delivery is left to ``drain()``.
    fileprivate final func publish(_ value: Value) {
        replacing { published in
            let next = Revision(epoch: published.epoch, number: published.number + 1)
            published.publish(value, next, cause: .thisProcess, depth: 0, merges: true)
        }
    }
}

extension Key {
    /// The name of a query's rows in messages.
    fileprivate static let queryName: Key = "query"
}
