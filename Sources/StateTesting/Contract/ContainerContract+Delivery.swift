import StateContainers

extension ContainerContract {
    func checkDelivery(_ place: ContractPlace, _ judge: Judge) throws {
        let state = try RecordingState(0, key: place.key("count"), in: keyspace)
        let revisions = StateLock<[Int64]>([])
        try onThreads(4) { thread in
            for _ in 0..<50 {
                let revision = try state.bump()
                revisions.withLock { $0.append(revision.number) }
            }
        }
        let expected = revisions.withLock { $0.sorted() }
        let delivered = try state.wait(forRevision: expected.last ?? 0, judge)
        try judge.expectEqual(delivered.map(\.revision), expected, "the delivered revisions")
        try judge.expectEqual(delivered.map(\.new), Array(1...200), "the delivered values")
        try judge.expectEqual(delivered.map(\.old), Array(0..<200), "the values before")
        try judge.expect(!state.overlapped, "didModify ran twice at once")
    }
}

/// A container that records the changes that its `didModify` gets.
///
/// All of it is under the lock: the proof of `@unchecked Sendable`.
private final class RecordingState: PersistentState<Int>, @unchecked Sendable {
    struct Delivered: Sendable {
        var old: Int
        var new: Int
        var revision: Int64
    }

    private struct Received: Sendable {
        var delivered: [Delivered] = []
        var isRunning = false
        var overlapped = false
    }

    private let received = StateLock(Received())
    private let semaphore = BlockingSemaphore()

    init(_ value: Int, key: Key, in keyspace: any Keyspace) throws(StateError) {
        try super.init(value, key: key, in: keyspace, codec: .contractDigits)
    }

    override func didModify(_ change: StateChange<Int>) {
        super.didModify(change)
        received.withLock { received in
            received.overlapped = received.overlapped || received.isRunning
            received.isRunning = true
        }
        received.withLock { received in
            received.delivered.append(
                Delivered(old: change.old, new: change.new, revision: change.revision.number)
            )
            received.isRunning = false
        }
        semaphore.signal()
    }

    var overlapped: Bool { received.withLock { $0.overlapped } }

    /// Adds 1; returns the revision of the commit.
    func bump() throws -> Revision {
        while true {
            let (value, revision) = versioned
            do { return try modify(value + 1, ifRevision: revision) } catch {
                guard error.code == .conflict else { throw error }
            }
        }
    }

    func wait(forRevision revision: Int64, _ judge: Judge) throws -> [Delivered] {
        try judge.wait(semaphore, for: "the change of revision \(revision)") {
            let delivered = received.withLock { $0.delivered }
            return delivered.last?.revision ?? 0 >= revision ? delivered : nil
        }
    }
}
