import StateEngine

/// Keeps a live query current: takes in complete commits as the keyspace delivers them, and
/// computes the rows on another thread.
///
/// Until the rows are computed it keeps one change for each key, however many commits arrive.
final class QueryFeed<Value: Codable & Sendable>: NotifierJob {
    /// Changes that the rows do not show yet.
    private struct Inbox {
        var changes: [Key: KeyspaceChange] = [:]
        /// Whether `changes` are all rows, not only the differences.
        var isWhole = false
        var epoch: Epoch?
        var absence: StateError?
        var isDraining = false
    }

    /// The visible rows; only the draining thread changes them.
    private struct Shown {
        var byKey: [Key: QueryRow<Value>] = [:]
        var unreadable: [Key: StateError] = [:]
    }

    private let query: StateQuery<Value>
    private let inbox = StateLock(Inbox())
    private let shown = StateLock(Shown())
    let rows: MonitoredState<[QueryRow<Value>], Never>
    /// Answered once there are rows, or an error.
    let loading = Answer()

    init(_ query: StateQuery<Value>) {
        self.query = query
        rows = MonitoredState([], key: .queryName)
    }

    var unreadable: [Key: StateError] { shown.withLock { $0.unreadable } }
    var absence: StateError? { inbox.withLock { $0.absence } }

    /// Takes in an event of the keyspace; the rows follow on the notifier.
    func receive(_ event: KeyspaceEvent) {
        let drains = inbox.withLock { inbox in
            switch event {
            case .commit(let revision, let changes, _):
                inbox.epoch = revision.epoch
                for change in changes { inbox.changes[change.key] = change }
            case .state(let revision, _, let changes):
                inbox.epoch = revision.epoch
                inbox.absence = nil
                inbox.isWhole = true
                inbox.changes = Dictionary(changes.map { ($0.key, $0) }) { $1 }
            case .resumed:
                inbox.absence = nil
                return false
            case .away(let error), .refused(_, let error):
                inbox.absence = error
                return false
            }
            defer { inbox.isDraining = true }
            return !inbox.isDraining
        }
        if drains {
            Notifier.shared.run(self)
        } else if let absence {
            loading.putFirst(.failure(absence))
        }
    }

    var subject: (key: Key, who: String) { (.queryName, "\(query.pattern)") }

    /// Shows what has arrived; later changes wait behind the listeners.
    func run() {
        guard let taken = take() else { return }
        show(taken)
        Notifier.shared.run(self)
    }

    private func take() -> Inbox? {
        inbox.withLock { inbox in
            guard inbox.isWhole || !inbox.changes.isEmpty else {
                inbox.isDraining = false
                return nil
            }
            defer {
                inbox.changes = [:]
                inbox.isWhole = false
            }
            return inbox
        }
    }

    private func show(_ taken: Inbox) {
        let epoch = taken.epoch ?? Epoch(bits: 1)
        let ordered = shown.withLock { shown in
            if taken.isWhole { shown = Shown() }
            for (key, change) in taken.changes {
                shown.byKey[key] = nil
                shown.unreadable[key] = nil
                guard let bytes = change.value else { continue }
                do throws(StateError) {
                    let value = try query.codec.decode(bytes)
                    guard query.isIncluded(value) else { continue }
                    let revision = Revision(epoch: epoch, number: change.revision)
                    shown.byKey[key] = QueryRow(key: key, value: value, revision: revision)
                } catch {
                    shown.unreadable[key] = error
                }
            }
            return shown.byKey.values.sorted(by: query.precedes)
        }
        rows.modify(ordered)
        loading.putFirst(.success(0))
    }
}

extension Key {
    /// The name of a query's rows in messages.
    fileprivate static let queryName: Key = "query"
}
