import StateContainers

extension ContainerContract {
    func checkTelling(_ place: ContractPlace, _ judge: Judge) throws {
        let state = try TellingState(0, key: place.key("count"), in: keyspace)
        let revisions = StateLock<[Int64]>([])
        try onThreads(4) { thread in
            for _ in 0..<50 {
                let revision = try state.bump()
                revisions.withLock { $0.append(revision.number) }
            }
        }
        let expected = revisions.withLock { $0.sorted() }
        let told = try state.wait(forRevision: expected.last ?? 0, judge)
        try judge.expectEqual(told.map(\.revision), expected, "the revisions that are told")
        try judge.expectEqual(told.map(\.new), Array(1...200), "the values that are told")
        try judge.expectEqual(told.map(\.old), Array(0..<200), "the values before")
        try judge.expect(!state.overlapped, "didModify ran twice at once")
    }
}

/// A container that remembers what its `didModify` was told.
///
/// All of it is under the lock: the proof of `@unchecked Sendable`.
private final class TellingState: PersistentState<Int>, @unchecked Sendable {
    struct Told: Sendable {
        var old: Int
        var new: Int
        var revision: Int64
    }

    private struct Heard: Sendable {
        var told: [Told] = []
        var isRunning = false
        var overlapped = false
    }

    private let heard = StateLock(Heard())
    private let semaphore = BlockingSemaphore()

    init(_ value: Int, key: Key, in keyspace: any Keyspace) throws(StateError) {
        try super.init(value, key: key, in: keyspace, codec: .contractDigits)
    }

    override func didModify(_ change: StateChange<Int>) {
        super.didModify(change)
        heard.withLock { heard in
            heard.overlapped = heard.overlapped || heard.isRunning
            heard.isRunning = true
        }
        heard.withLock { heard in
            heard.told.append(
                Told(old: change.old, new: change.new, revision: change.revision.number)
            )
            heard.isRunning = false
        }
        semaphore.signal()
    }

    var overlapped: Bool { heard.withLock { $0.overlapped } }

    /// Adds 1; the revision of the commit.
    func bump() throws -> Revision {
        while true {
            let (value, revision) = versioned
            do { return try modify(value + 1, ifRevision: revision) } catch {
                guard error.code == .conflict else { throw error }
            }
        }
    }

    func wait(forRevision revision: Int64, _ judge: Judge) throws -> [Told] {
        try judge.wait(semaphore, for: "the change of revision \(revision)") {
            let told = heard.withLock { $0.told }
            return told.last?.revision ?? 0 >= revision ? told : nil
        }
    }
}
