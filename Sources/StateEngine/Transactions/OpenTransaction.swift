/// The transaction that is open: what it has changed, and who makes it.
package struct OpenTransaction: ~Copyable {
    /// The one that it takes when it is finished; 0 if no transaction is open.
    package private(set) var revision: Int64 = 0
    /// Milliseconds since 1970.
    private(set) var time: Int64 = 0
    /// Who has to be allowed what it does; nil if everything is.
    var subject: Subject?
    /// Its session holds it, which outlives the transaction.
    private(set) var cause: Unmanaged<InternedCause>?
    /// Nil for a change that a later one of the same transaction took back.
    var changes: [Record?] = []
    /// Of keys, values and notes.
    var byteCount = 0
    /// The most that the rules of its keys ask for.
    var durability = Durability.memory
    var notes: [Note] = []
    /// What it has taken of the writes that somebody may make in a second.
    var rates: [(rate: WriteRate, uid: UInt32)] = []
    /// Whether it is what others did to files, and whose the file of its next change is.
    var isOfFiles = false
    var fileOwner: UInt32?

    var isOpen: Bool { revision != 0 }

    /// Whether it has changed an entry so far.
    package var hasChanges: Bool { changes.contains { $0 != nil } }

    mutating func begin(
        _ revision: Int64,
        at time: Int64,
        by cause: InternedCause,
        _ subject: Subject?
    ) {
        precondition(!isOpen, "a transaction is open")
        (self.revision, self.time, self.subject) = (revision, time, subject)
        self.cause = .passUnretained(cause)
        durability = .memory
    }

    /// Gives the changes that are left their places in the commit.
    ///
    /// - Returns: Whether there are any, or notes.
    mutating func seal() -> Bool {
        if changes.contains(nil) {
            changes.removeAll { $0 == nil }
            for (index, record) in changes.enumerated() { record?.ordinal = Int32(index) }
        }
        return !changes.isEmpty || !notes.isEmpty
    }

    mutating func end() {
        (revision, subject, cause, byteCount) = (0, nil, nil, 0)
        if !rates.isEmpty { rates.removeAll() }
        if !notes.isEmpty { notes = [] }
        changes.removeAll(keepingCapacity: changes.capacity <= 4_096)
    }

    /// - Throws: ``StateError/Code/tooBig``, if a change of `byteCount` bytes would make it more than `bytes` or `changes`.
    @inline(__always)
    func checkRoom(for byteCount: Int, _ bytes: Int, _ changes: Int) throws(StateError) {
        guard self.byteCount + byteCount <= bytes else {
            throw OpenTransaction.full(bytes, "bytes of keys and values")
        }
        guard self.changes.count < changes else { throw OpenTransaction.full(changes, "changes") }
    }

    @inline(never)
    private static func full(_ most: Int, _ unit: StaticString) -> StateError {
        StateError(.tooBig, "a transaction of more than \(most) \(unit)")
    }
}
