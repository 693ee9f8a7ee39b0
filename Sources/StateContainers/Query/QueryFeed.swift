import Observation
import StateEngine

/// Keeps a live query current: takes in complete commits as the keyspace delivers them, and
/// computes the rows when somebody reads them, or else on another thread.
///
/// A keyspace delivers a commit before its write returns. So who reads the rows after a write has
/// its commit in the inbox, or in the rows.
///
/// Until the rows are computed it keeps one change for each key, however many commits arrive.
final class QueryFeed<Value: Codable & Sendable>: NotifierJob, Observable {
    /// Changes that the rows do not show yet.
    private struct Inbox {
        var changes: [Key: KeyspaceChange] = [:]
        /// Whether `changes` are all rows, not only the differences.
        var isWhole = false
        var epoch = Epoch(bits: 1)
        var absence: StateError?
        /// Whether the notifier has this job.
        var isDraining = false

        var isEmpty: Bool { !isWhole && changes.isEmpty }

        /// - Returns: Whether the caller must give the job to the notifier.
        mutating func receive(_ event: KeyspaceEvent) -> Bool {
            switch event {
            case .commit(let revision, let changes, _):
                epoch = revision.epoch
                for change in changes { self.changes[change.key] = change }
            case .state(let revision, _, let changes):
                epoch = revision.epoch
                absence = nil
                isWhole = true
                self.changes = Dictionary(changes.map { ($0.key, $0) }) { $1 }
            case .resumed:
                absence = nil
                return false
            case .away(let error), .refused(_, let error):
                absence = error
                return false
            }
            defer { isDraining = true }
            return !isDraining
        }
    }

    /// What the rows show.
    private struct Shown {
        var byKey: [Key: QueryRow<Value>] = [:]
        var unreadable: [Key: StateError] = [:]
        var rows = QueryRows<Value>()
        /// The sums that were asked for, by what is added.
        var sums: [PathID: any RunningSum<Value>] = [:]
    }

    /// What the rows show no longer, released after the lock: the `deinit` of an object in a row may
    /// use the query.
    private struct Gone {
        var rows: [QueryRow<Value>] = []
        var shown: Shown?
        var published: QueryRows<Value>?
    }

    private let query: StateQuery<Value>
    private let registrar = ObservationRegistrar()
    private let inbox = StateLock(Inbox())
    /// Held while changes are taken from the inbox and shown: one thread after the other, and who
    /// waits for it reads what the other has shown.
    private let shown = StateLock(Shown())
    /// The rows; scopes do not divide them.
    let rows: MonitoredContainer<QueryRows<Value>, StateError>
    /// Answered once there are rows, or an error.
    let loading = Answer()

    init(_ query: StateQuery<Value>) {
        self.query = query
        let core = StateCore.inMemory(
            QueryRows<Value>(),
            key: .queryName,
            isDirect: false,
            isTracked: false
        )
        rows = MonitoredContainer(core: core, check: nil)
    }

    /// The rows with all commits that were delivered before the call.
    var current: QueryRows<Value> {
        catchUp()
        rows.ownCore.track(\.self)
        return rows.ownCore.read()
    }

    var unreadable: [Key: StateError] {
        catchUp()
        rows.ownCore.track(\.self)
        return shown.withLock { $0.unreadable }
    }

    /// The sum of a part of all rows, without offset and limit.
    ///
    /// - Complexity: O(*n*) in the rows the first time; then O(1), or for floating-point numbers,
    ///   whose sums would become inexact, O(*n*) again after each change.
    func sum<Number: AdditiveArithmetic & Sendable>(
        _ path: any KeyPath<Value, Number> & Sendable
    ) -> Number {
        catchUp()
        rows.ownCore.track(\.self)
        return shown.withLock { shown in
            let present = shown.sums[PathID(path: path)] as? PartSum<Value, Number>
            var sum = present ?? PartSum(path: path)
            let total = sum.total(of: shown.byKey.values.lazy.map(\.value))
            shown.sums[PathID(path: path)] = sum
            return total
        }
    }

    var absence: StateError? {
        registrar.access(self, keyPath: \.absence)
        return inbox.withLock { $0.absence }
    }

    // MARK: The keyspace's side

    /// Takes in an event of the keyspace; the rows follow at the next read, or on the notifier.
    func receive(_ event: KeyspaceEvent) {
        let (drains, wasAbsent, absence) = inbox.withLock { inbox in
            let wasAbsent = inbox.absence
            let drains = inbox.receive(event)
            return (drains, wasAbsent, inbox.absence)
        }
        if wasAbsent != absence { registrar.withMutation(of: self, keyPath: \.absence) {} }
        if drains {
            Notifier.shared.run(self)
        } else if let absence {
            loading.putFirst(.failure(absence))
        }
    }

    var subject: (key: Key, who: String) { (.queryName, "\(query.pattern)") }

    /// Shows what has arrived; later changes wait behind the listeners.
    func run() {
        let isDone = inbox.withLock { inbox in
            inbox.isDraining = !inbox.isEmpty
            return inbox.isEmpty
        }
        guard !isDone else { return }
        catchUp()
        Notifier.shared.run(self)
    }

    // MARK: The rows

    /// Shows everything that has arrived.
    ///
    /// Order, filter and codec of the query run on this thread.
    ///
    /// - Complexity: O(log *n*) comparisons for each change; if there are many, O(*n* log *n*) for
    ///   all of them.
    func catchUp() {
        rows.ownCore.checkBody()
        let (isNew, gone) = shown.withLock { shown -> (Bool, Gone) in
            let taken = takeArrived()
            var gone = Gone()
            guard !taken.isEmpty, show(taken, in: &shown, &gone) || taken.isWhole else {
                return (false, gone)
            }
            gone.published = rows.ownCore.read()
            return (publish(shown.rows, evenIfSame: taken.isWhole), gone)
        }
        withExtendedLifetime(gone) {}
        guard isNew else { return }
        loading.putFirst(.success(0))
        rows.ownCore.deliverLater()
    }

    /// - Returns: Whether there was something to publish: of a query with a limit or an offset, most
    ///   changes concern other rows.
    private func publish(_ all: QueryRows<Value>, evenIfSame: Bool) -> Bool {
        let new = all.window(offset: query.rowOffset, limit: query.rowLimit)
        let isWindow = query.rowOffset > 0 || query.rowLimit < .max
        if isWindow, !evenIfSame, new.isSame(as: rows.ownCore.read()) { return false }
        rows.ownCore.publish(new)
        return true
    }

    private func takeArrived() -> Inbox {
        inbox.withLock { inbox in
            defer { (inbox.changes, inbox.isWhole) = ([:], false) }
            return inbox
        }
    }

    /// - Returns: Whether any row has changed.
    private func show(_ taken: Inbox, in shown: inout Shown, _ gone: inout Gone) -> Bool {
        if taken.isWhole {
            gone.shown = shown
            shown = Shown(sums: shown.sums.mapValues { $0.restarted })
        }
        // Sorting all of them is cheaper then.
        let isAnew = taken.isWhole || taken.changes.count > max(64, shown.rows.count / 8)
        var hasChanged = false
        for (key, change) in taken.changes {
            let new = row(key, change, taken.epoch, &shown.unreadable, &gone)
            let old =
                new.map { shown.byKey.updateValue($0, forKey: key) }
                ?? shown.byKey.removeValue(forKey: key)
            if let old, rows.ownCore.ownsObjects { gone.rows.append(old) }
            hasChanged = hasChanged || old != nil || new != nil
            for path in shown.sums.keys { shown.sums[path]?.replace(old?.value, with: new?.value) }
            if !isAnew { shown.rows.replace(old, with: new, in: query.precedes) }
        }
        if isAnew { shown.rows = QueryRows(sorted: shown.byKey.values.sorted(by: query.precedes)) }
        return hasChanged
    }

    /// The row of a change; nil if there is none.
    private func row(
        _ key: Key,
        _ change: KeyspaceChange,
        _ epoch: Epoch,
        _ unreadable: inout [Key: StateError],
        _ gone: inout Gone
    ) -> QueryRow<Value>? {
        if !unreadable.isEmpty { unreadable[key] = nil }
        guard let bytes = change.value else { return nil }
        do throws(StateError) {
            let value = try query.codec.decode(bytes)
            let revision = Revision(epoch: epoch, number: change.revision)
            let row = QueryRow(key: key, value: value, revision: revision)
            if query.isIncluded(value) { return row }
            if rows.ownCore.ownsObjects { gone.rows.append(row) }
            return nil
        } catch {
            unreadable[key] = error
            return nil
        }
    }
}

extension StateCore {
    /// Publishes a value that this process has computed; its delivery is left to
    /// ``deliverLater()``.
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
