import Glibc
import StateEngine
import StateTestSupport
import Testing

/// Who commits: a writer that waits, where the commit thread has nothing to do, else the commit thread.
@Suite struct LentThreadTests {
    private let held = HeldBacking()
    private let backing: ThreadNotingBacking
    private let keyspace: LocalKeyspace

    init() throws {
        backing = ThreadNotingBacking(held)
        keyspace = try LocalKeyspace(backing: backing)
        // Until the commit thread has looked for something to do, it may be faster than a writer.
        let isIdle = eventually { [keyspace] in keyspace.isCommitThreadIdle }
        try #require(isIdle, "the commit thread does not rest")
    }

    @Test func `a lone writer that waits commits by itself`() throws {
        defer { keyspace.close() }
        held.open()
        for number in 0..<10 { try keyspace.apply([.set("k", [UInt8(number)])]) }
        #expect(backing.committers == Array(repeating: pthread_self(), count: 10))
    }

    @Test func `a writer that goes on leaves the commit to the commit thread`() throws {
        defer { keyspace.close() }
        held.open()
        let answer = Observed<Result<Int64, StateError>?>(nil)
        keyspace.submit([.set("k", [1])]) { given in answer.update { $0 = given } }
        #expect(answer.wait { $0 == .success(1) })
        #expect(backing.committers.count == 1 && backing.committers[0] != pthread_self())
    }

    @Test func `what comes while a writer commits is one commit of the commit thread`() throws {
        defer { keyspace.close() }
        let writer = Writer(keyspace, "first")
        #expect(held.held()?.count == 1)
        let answers = Observed<[Result<Int64, StateError>]>([])
        for key: Key in ["second", "third", "fourth"] {
            keyspace.submit([.set(key, [1])]) { answer in answers.update { $0.append(answer) } }
        }
        held.release()
        #expect(held.held()?.count == 3)
        held.release()
        #expect(writer.answer == .success(1))
        #expect(answers.wait { $0.count == 3 })
        #expect(answers.current == [.success(2), .success(3), .success(4)])
        #expect(backing.committers.count == 2 && backing.committers[0] != backing.committers[1])
    }

    @Test func `a writer whose commit fails throws, and the next one commits`() throws {
        defer { keyspace.close() }
        let error = StateError(.noSpace, "the disk is full")
        held.fail(error)
        #expect(throws: error) { try keyspace.apply([.set("k", [1])]) }
        #expect(keyspace.entry(for: "k") == nil)
        held.release()
        #expect(try keyspace.apply([.set("k", [2])]) == 2)
        #expect(backing.committers == [pthread_self(), pthread_self()])
    }

    @Test func `after an unknown outcome of a writer the commit thread opens the store anew`()
        throws
    {
        defer { keyspace.close() }
        held.holdReopening()
        held.fail(StateError(.readOnly, "outcome unknown: the disk is gone"), isKept: true)
        #expect(throws: StateError.self) { try keyspace.apply([.set("k", [1])]) }
        #expect(throws: StateError.self) { try keyspace.apply([.set("k", [2])]) }
        #expect(held.attemptCount == 1)
        held.openAgain()
        held.open()
        // Only when the store is open again is the commit there.
        let isThere = Observed(false)
        let watch = keyspace.watch { event in
            if case .commit = event { isThere.update { $0 = true } }
        }
        watch.include([Pattern(Key(verified: "k"))])
        if keyspace.entry(for: "k") == nil { #expect(isThere.wait { $0 }) }
        #expect(keyspace.entry(for: "k")?.value == [1])
        #expect(!backing.reopeners.isEmpty && backing.reopeners.allSatisfy { $0 != pthread_self() })
    }

    @Test func `a writer is not kept by what others write meanwhile`() throws {
        defer { keyspace.close() }
        held.open()
        let told = Observed(0)
        // Not what is told in all: this thread may be preempted before it looks.
        let toldByWriter = Observed(0)
        let writer = pthread_self()
        // What it is told of has it write the next, which is durable before it goes on.
        let watch = keyspace.watch { [keyspace] event in
            guard case .commit(let revision, _, _) = event, revision.number < 1_000 else { return }
            told.update { $0 += 1 }
            keyspace.submit([.set("k", [0])]) { _ in }
            guard pthread_self() == writer else { return }
            toldByWriter.update { $0 += 1 }
            while keyspace.revision == revision.number { sched_yield() }
        }
        watch.include([Pattern("k" as Key)])
        try keyspace.apply([.set("k", [1])])
        #expect(toldByWriter.current < 100)
        #expect(told.wait { $0 == 999 })
    }

    @Test(arguments: [true, false])
    func `a close while a writer commits waits for it`(succeeds: Bool) throws {
        let writer = Writer(keyspace, "k")
        #expect(held.held() != nil)
        let isClosed = Observed(false)
        let closer = WorkerThread(name: "closer")
        closer.start { [keyspace] in
            keyspace.close()
            isClosed.update { $0 = true }
        }
        #expect(!isClosed.current && !held.isClosed)
        let error = StateError(.noSpace, "the disk is full")
        if succeeds { held.release() } else { held.fail(error) }
        #expect(writer.answer == (succeeds ? .success(1) : .failure(error)))
        #expect(isClosed.wait { $0 }, "close waits for ever")
        closer.join()
        #expect(held.isClosed)
        #expect(held.kept.count == (succeeds ? 1 : 0))
        #expect(throws: StateError.self) { try keyspace.apply([.set("k", [2])]) }
    }

    @Test(arguments: Seed.each(3))
    func `8 writers, of which half wait, on a disk that fails now and then`(seed: UInt64) throws {
        let answers = Observed<[String: [Result<Int64, StateError>]]>([:])
        let isDone = Observed(false)
        let disk = WorkerThread(name: "disk")
        disk.start { [held] in
            var random = SplitMix(seed: seed)
            while !isDone.current, held.held() != nil {
                if random.chance(20) {
                    held.fail(StateError(.noSpace, "the disk is full"))
                } else {
                    held.release()
                }
            }
        }
        onThreads(8) { [keyspace] thread in
            for number in 0..<100 {
                let name = "\(thread)/\(number)"
                let mutations: [Mutation] = [.set(Key(verified: name), [1]), .set("shared", [])]
                let commitsOnCaller = thread % 2 == 0
                keyspace.submit(mutations, commitsOnCaller: commitsOnCaller) { answer in
                    answers.update { $0[name, default: []].append(answer) }
                }
                guard commitsOnCaller else { continue }
                keyspace.commitOnCaller()
                _ = answers.wait { $0[name] != nil }
            }
        }
        #expect(answers.wait { $0.count == 800 }, "answers are missing")
        isDone.update { $0 = true }
        // One more commit, for which the disk may be waiting.
        keyspace.submit([.set("last", [])]) { _ in }
        disk.join()
        held.open()
        keyspace.close()
        #expect(!backing.hasOverlapped)
        for (name, given) in answers.current {
            #expect(given.count == 1, "\(name)")
            let isThere = keyspace.entry(for: Key(verified: name)) != nil
            #expect(isThere == (try? given[0].get()).map { $0 > 0 } ?? false, "\(name): \(given)")
        }
        #expect(keyspace.withCore { $0.checkInvariants(retainedCauseCount: 0) } == [])
    }
}

/// A thread that writes one key and waits.
private final class Writer: Sendable {
    private let given = Observed<Result<Int64, StateError>?>(nil)
    private let thread = WorkerThread(name: "writer")

    init(_ keyspace: LocalKeyspace, _ key: String) {
        thread.start { [given] in
            let answer: Result<Int64, StateError>
            do throws(StateError) {
                answer = .success(try keyspace.apply([.set(Key(verified: key), [1])]))
            } catch {
                answer = .failure(error)
            }
            given.update { $0 = answer }
        }
    }

    /// What it was answered; nil where it was not in time.
    var answer: Result<Int64, StateError>? {
        guard given.wait(until: { $0 != nil }) else { return nil }
        thread.join()
        return given.current
    }
}

/// A backing that calls from which threads it is used, and whether two were in it at once.
private final class ThreadNotingBacking: Backing {
    private struct Calls {
        var isInUse = false
        var hasOverlapped = false
        var committers: [pthread_t] = []
        var reopeners: [pthread_t] = []
    }

    private let held: HeldBacking
    private let calls = Observed(Calls())

    init(_ held: HeldBacking) { self.held = held }

    var committers: [pthread_t] { calls.current.committers }
    var reopeners: [pthread_t] { calls.current.reopeners }
    var hasOverlapped: Bool { calls.current.hasOverlapped }

    private func enter(_ note: WritableKeyPath<Calls, [pthread_t]>) {
        calls.update { calls in
            calls.hasOverlapped = calls.hasOverlapped || calls.isInUse
            calls.isInUse = true
            calls[keyPath: note].append(pthread_self())
        }
    }

    private func leave() { calls.update { $0.isInUse = false } }

    // MARK: Backing

    let isPersistent = true

    func load(_ receive: (borrowing StoredChange) -> Void) -> LoadedStore { held.load(receive) }

    func commit(_ batch: borrowing CommitBatch) throws {
        enter(\.committers)
        defer { leave() }
        try held.commit(batch)
    }

    func reopen(
        after revision: Int64,
        _ receive: (borrowing StoredChange) -> Void
    ) throws -> [String: String?] {
        enter(\.reopeners)
        defer { leave() }
        return try held.reopen(after: revision, receive)
    }

    func close() { held.close() }
}
