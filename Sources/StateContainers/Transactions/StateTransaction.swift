import StateEngine

/// The reads and writes of a transaction so far, visible only to its body.
///
/// `tx[a]` is the value of container `a`: what the body wrote, else what it first read.
public struct StateTransaction: ~Copyable {
    /// How many containers one transaction may use: the locks of all are held at once.
    public static var limit: Int { 1_000 }

    private(set) var entries: [any TransactionEntry] = []
    private var places: [ObjectIdentifier: Int] = [:]
    private let caller: TransactionCaller

    init(_ caller: TransactionCaller) { self.caller = caller }

    /// The value of `state` in this transaction.
    public subscript<Value, Failure>(_ state: StateContainer<Value, Failure>) -> Value {
        mutating get { state.read(in: &self) }
        set { state.write(newValue, in: &self) }
    }

    mutating func entry<Value, Failure>(
        of state: StateContainer<Value, Failure>
    ) -> Entry<Value> {
        let core = state.core
        caller.key = core.key
        if let place = places[ObjectIdentifier(core)],
            let entry = entries[place] as? Entry<Value>
        {
            return entry
        }
        let entry = core.transactionEntry(check: state.check, state.plainChange.expiry)
        places[ObjectIdentifier(core)] = entries.count
        entries.append(entry)
        return entry
    }

    /// One container in a transaction.
    package class Entry<Value: Sendable>: TransactionEntry {
        let core: StateCore<Value>
        let check: StateCore<Value>.Check?
        /// The revision at which the value was read.
        let read: Revision
        var value: Value
        var isWritten = false
        /// The value as it was read, retained until all locks are released.
        private let original: Value

        init(
            _ core: StateCore<Value>,
            _ value: Value,
            _ revision: Revision,
            check: StateCore<Value>.Check?
        ) {
            self.core = core
            self.check = check
            self.value = value
            original = value
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

/// A transaction to those who use a container in its body, but not through it.
final class TransactionCaller: BodyOwner {
    private let file: StaticString
    private let line: UInt
    /// The container that was last read or written through it; nil if none was.
    var key: Key?

    init(_ file: StaticString, _ line: UInt) { (self.file, self.line) = (file, line) }

    func trap(_ user: String) -> Never {
        let others = key.map { " of state '\($0)'" } ?? ""
        fatalError(
            "\(user) is used in the body of the transaction\(others), but not through it: "
                + "read and write with tx[state]",
            file: file,
            line: line
        )
    }
}

/// One container in a transaction, with a value of any type.
protocol TransactionEntry: AnyObject {
    var key: Key { get }
    /// The core.
    var place: ObjectIdentifier { get }
    var isWritten: Bool { get }
    /// The revision at which the value was read.
    var read: Revision { get }

    /// - Throws: ``StateError/Code/rejected`` if the written value is refused, or
    ///   ``StateError/Code/feedbackLoop``.
    func validate() throws(StateError)

    /// Waits until the queues of its changes have room.
    func waitForRoom()

    /// Locks; if the value is still the one that was read and `others` returns true, publishes the
    /// written value.
    func commitInMemory(_ others: () -> Bool) -> Bool

    /// Delivers what was written, with no lock held.
    func drain()
}
