import Glibc
import StateEngine
import StateTestSupport
import Testing

/// After a piece of compaction whose outcome is unknown.
struct FailedCompactionTests {
    private static let unknown = StateError(.readOnly, "outcome unknown: the sync failed")
    private let backing = CompactingHeldBacking()
    private let keyspace: LocalKeyspace

    init() throws { keyspace = try LocalKeyspace(backing: backing) }

    /// Has a piece of compaction fail, in the middle of which "k" was written.
    ///
    /// - Returns: What the writer was answered, and when that is known.
    private func writeWhileCompacting() throws -> Observed<Result<Int64, StateError>?> {
        try keyspace.withCore { (core) throws(StateError) in
            try keyspace.compact(to: 0, shrinks: false, in: core) { _ in }
        }
        try #require(backing.waitsInCompaction)
        let answer = Observed<Result<Int64, StateError>?>(nil)
        keyspace.submit([.set("k", Array("v".utf8))]) { result in answer.update { $0 = result } }
        backing.failCompaction(Self.unknown)
        return answer
    }

    @Test
    func `never silent about storage: writers are refused if the store cannot be opened again`()
        throws
    {
        defer { keyspace.close() }
        backing.held.failReopening(StateError(.corrupt, "the store is damaged"))
        let answer = try writeWhileCompacting()
        try #require(answer.wait { $0 != nil })
        let error = #expect(throws: StateError.self) { try answer.current?.get() }
        #expect(error?.code == .readOnly)
        #expect(error?.message.contains("the store is damaged") == true)
        #expect(keyspace.entry(for: "k") == nil)
        // It is tried again, and then writes are taken.
        #expect(eventually { (try? keyspace.apply([.set("k", Array("w".utf8))])) != nil })
        #expect(backing.held.kept.map(\.value) == [Array("w".utf8)])
    }

    @Test func `never silent about storage: writers are answered once the store is open again`()
        throws
    {
        defer { keyspace.close() }
        let answer = try writeWhileCompacting()
        try #require(answer.wait { $0 != nil })
        #expect(try answer.current?.get() == 1)
        #expect(backing.held.kept.map(\.value) == [Array("v".utf8)])
    }

    @Test
    func `durable before told: a queued write that is refused is not committed`()
        throws
    {
        defer { keyspace.close() }
        backing.held.failReopening(StateError(.storage, "the disk is away"))
        keyspace.settleElsewhere {}
        let answer = try writeWhileCompacting()
        try #require(eventually { backing.held.reopenCount == 2 })
        // The commit thread has time to go on, wrongly.
        usleep(50_000)
        #expect(answer.current == nil)
        keyspace.settle { _ in }
        #expect(throws: StateError.self) { try answer.current?.get() }
        #expect(answer.current != nil)
        #expect(backing.held.kept.isEmpty)
    }
}

/// After a commit that the disk had no room for.
struct RoomTests {
    @Test func `a full disk is looked at again, although nobody writes`() throws {
        let backing = CompactingHeldBacking()
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        let isFailed = Observed(false)
        keyspace.settleElsewhere { isFailed.update { $0 = true } }
        let full = StateError(.noSpace, "disk full")
        backing.lack(full)
        backing.held.fail(full)
        let answer = Observed<Result<Int64, StateError>?>(nil)
        keyspace.submit([.set("k", Array("v".utf8))]) { result in answer.update { $0 = result } }
        try #require(isFailed.wait { $0 })
        // The commit thread waits until what was computed on the failed commit is undone.
        usleep(50_000)
        keyspace.settle { _ in }
        #expect(throws: full) { try answer.current?.get() }
        // Nobody writes any more, as all are refused.
        let before = backing.lookCount
        #expect(eventually { backing.lookCount > before })
    }
}

/// When a piece of compaction begins.
struct CompactionPaceTests {
    @Test func `a piece that need not be done between two commits begins once clients pause`()
        throws
    {
        let backing = CompactingHeldBacking()
        let keyspace = try LocalKeyspace(backing: backing)
        defer { keyspace.close() }
        // A piece before the first commit would keep no client waiting, and may begin at once.
        try keyspace.apply([.set("k", [])])
        for round in 0..<5 {
            backing.needPiece()
            for number in 0..<20 {
                let isAnswered = Observed(false)
                // As the daemon commits: on the commit thread.
                keyspace.submit([.set("k", [UInt8(number)])]) { _ in
                    isAnswered.update { $0 = true }
                }
                try #require(isAnswered.wait { $0 })
            }
            try #require(eventually { backing.pauses.count > round })
        }
        #expect(backing.pauses.allSatisfy { $0 >= .milliseconds(20) }, "\(backing.pauses)")
    }
}

/// A backing whose compaction waits until it is made to fail, unless it needs a piece.
private final class CompactingHeldBacking: CompactingBacking {
    private struct State {
        var hasNews = false
        var committedAt = ContinuousClock.now
        var pauses: [Duration] = []
        var isCompacting = false
        var error: StateError?
        var shortage: StateError?
        var lookCount = 0
    }

    let held = HeldBacking(isHeld: false)
    private let state = Observed(State())

    /// Whether a piece of compaction waits, or comes in time.
    var waitsInCompaction: Bool { state.wait { $0.isCompacting } }

    func failCompaction(_ error: StateError) { state.update { $0.error = error } }

    /// There is enough for one piece, but so little that it can wait.
    func needPiece() {
        state.update { $0.hasNews = true }
    }

    /// How long before each of these pieces the last commit was.
    var pauses: [Duration] { state.current.pauses }

    /// From now on the disk has too little room.
    func lack(_ error: StateError) { state.update { $0.shortage = error } }

    /// How often it has looked for room.
    var lookCount: Int { state.current.lookCount }

    // MARK: CompactingBacking

    let isPersistent = true
    var capabilities: BackingCapabilities {
        var capabilities = BackingCapabilities()
        capabilities.history = self
        capabilities.compaction = self
        return capabilities
    }
    var hasCompactionNews: Bool { state.current.hasNews }
    var shortage: StateError? { state.current.shortage }

    func load(_ receive: (borrowing StoredChange) -> Void) -> LoadedStore { held.load(receive) }
    func commit(_ batch: borrowing CommitBatch) throws {
        try held.commit(batch)
        state.update { $0.committedAt = .now }
    }
    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String?] {
        try held.reopen(after: revision, receive)
    }
    func close() { held.close() }
    func openHistory() throws -> any HistoryReading { throw StateError(.storage, "no history") }
    func lookForRoom() { state.update { $0.lookCount += 1 } }
    func raiseCompaction(to revision: Int64) {}
    func syncCompaction() {}
    func shrink() -> Int64 { 0 }

    func compact(while goesOn: () -> Bool) throws(StateError) -> CompactionStep {
        let now = ContinuousClock.now
        let isPiece = state.take { state in
            guard state.hasNews else { return false }
            state.pauses.append(now - state.committedAt)
            state.hasNews = false
            return true
        }
        if isPiece == true { return CompactionStep(compacted: 0) }
        state.update { $0.isCompacting = true }
        let error = state.take { $0.error }
        throw error ?? StateError(.storage, "held for 20 s")
    }
}
