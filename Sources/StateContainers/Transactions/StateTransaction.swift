import StateEngine

/// What a transaction has read and written so far: containers as they are for its body alone.
///
/// `tx[a]` is the value of container `a` for the body: what it wrote, else what it read first.
public struct StateTransaction: ~Copyable {
    /// The most containers that one transaction may read and write: the locks of all are held at once.
    public static var limit: Int { 1_000 }

    private(set) var entries: [any TransactionEntry] = []
    private var places: [ObjectIdentifier: Int] = [:]

    init() {}

    /// The value of `state` in this transaction.
    public subscript<Value, Failure>(_ state: State<Value, Failure>) -> Value {
        mutating get { entry(of: state).value }
        set {
            let entry = entry(of: state)
            entry.value = newValue
            entry.isWritten = true
        }
    }

    private mutating func entry<Value, Failure>(
        of state: State<Value, Failure>
    ) -> Entry<Value> {
        let core = state.core
        if let place = places[ObjectIdentifier(core)],
            let entry = entries[place] as? Entry<Value>
        {
            return entry
        }
        let entry = core.transactionEntry(check: state.check)
        places[ObjectIdentifier(core)] = entries.count
        entries.append(entry)
        return entry
    }

    /// One container in a transaction.
    package class Entry<Value: Sendable>: TransactionEntry {
        let core: StateCore<Value>
        let check: StateCore<Value>.Check?
        /// What the value was read at.
        let read: Revision
        var value: Value
        var isWritten = false

        init(
            _ core: StateCore<Value>,
            _ value: Value,
            _ revision: Revision,
            check: StateCore<Value>.Check?
        ) {
            self.core = core
            self.check = check
            self.value = value
            read = revision
        }

        var key: Key { core.key }
        var place: ObjectIdentifier { ObjectIdentifier(core) }

        func validate() throws(StateError) {
            guard isWritten else { return }
            try Feedback.check(key)
            try check?(value)
        }

        func waitForRoom() {
            guard isWritten else { return }
            for queue in core.published.withLock({ $0.queues }) { queue.waitForRoom() }
        }

        func drain() { if isWritten { core.drain() } }

        func commitInMemory(_ others: () -> Bool) -> Bool {
            core.publish(isWritten ? value : nil, ifRevision: read, and: others)
        }
    }
}

/// One container in a transaction, whatever it holds.
protocol TransactionEntry: AnyObject {
    var key: Key { get }
    /// The core.
    var place: ObjectIdentifier { get }
    var isWritten: Bool { get }
    /// What the value was read at.
    var read: Revision { get }

    /// - Throws: ``StateError/Code/rejected`` where what was written is refused, or ``StateError/Code/feedbackLoop``.
    func validate() throws(StateError)

    /// Waits until who is told of its changes has caught up.
    func waitForRoom()

    /// Locks, and where the value is the one that was read and `others` says yes, publishes what was written.
    func commitInMemory(_ others: () -> Bool) -> Bool

    /// Tells of what was written, with no lock held.
    func drain()
}
