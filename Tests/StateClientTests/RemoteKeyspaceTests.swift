import Glibc
import StateClient
import StateEngine
import StateServer
import StateTestSupport
import Testing

/// What a keyspace promises, of the daemon's.
struct RemoteKeyspaceTests {
    private let server: ServedKeyspace
    private let keyspace: RemoteKeyspace

    init() throws {
        server = try ServedKeyspace(HeldBacking(isHeld: false))
        keyspace = try RemoteKeyspace(socket: server.socketPath, name: "test")
    }

    @Test func `a write is on stable storage when it returns, with all that is known of it`() throws
    {
        let revision = try keyspace.apply([.set("k", [1, 0, 255])])
        let entry = try #require(try keyspace.entry(for: "k"))
        #expect(server.keyspace.entry(for: "k") == entry)
        #expect(entry.value == [1, 0, 255] && entry.revision == revision)
        #expect(entry.cause.pid == getpid() && entry.cause.client == "test")
        #expect(keyspace.epoch == server.keyspace.epoch)
        #expect(try keyspace.entry(for: "absent") == nil)
    }

    @Test func `who does not want to hold a thread awaits`() async throws {
        try await keyspace.apply([.set("k", [1]), .set("l", [2])])
        let entry = try await keyspace.entry(for: "k")
        #expect(entry?.value == [1])
        let some = try await keyspace.entries(.everything, after: "k", limit: 2)
        #expect(some.map(\.key) == ["l"])
        try await keyspace.apply([.delete("k")])
        let gone = try await keyspace.entry(for: "k")
        #expect(gone == nil)
    }

    @Test func `several mutations are one commit, or none`() throws {
        try keyspace.apply([.set("a", []), .set("b", [2])])
        let error = #expect(throws: StateError.self) {
            try keyspace.apply([.set("a", [9]), .delete("b", ifRevision: 7), .set("c", [])])
        }
        #expect(error?.code == .conflict)
        let revision = try keyspace.apply([
            .check("a", revision: 1), .delete("b", ifRevision: 1), .set("c", [3], ifRevision: 0),
        ])
        #expect(revision == 2)
        #expect(server.durable() == ["a": "", "c": "\u{3}"])
        #expect(try keyspace.apply([]) == 2)
        #expect(try keyspace.apply([.delete("missing")]) == 2)
    }

    @Test func `entries come in key order, after a key, up to a number`() throws {
        try keyspace.apply((0..<50).map { .set(try Key("a/\($0 + 10)"), [UInt8($0)]) })
        try keyspace.apply([.set("b", [])])
        let all = try keyspace.entries("a/", after: nil, limit: .max)
        #expect(all.map(\.key.description) == (10..<60).map { "a/\($0)" })
        #expect(all.map(\.entry.value) == (0..<50).map { [$0] })
        #expect(all[7].entry == server.keyspace.entry(for: "a/17"))
        let some = try keyspace.entries(.everything, after: "a/58", limit: 2)
        #expect(some.map(\.key) == ["a/59", "b"])
    }

    @Test func `entries that are more than one reply come in parts`() throws {
        let server = try ServedKeyspace { $0.replyByteCount = 5_000 }
        let keyspace = try RemoteKeyspace(socket: server.socketPath)
        for number in 0..<40 {
            let value = [UInt8](repeating: 0, count: 1_000)
            try keyspace.apply([.set(try Key("k\(number)"), value)])
        }
        #expect(try keyspace.entries(.everything, after: nil, limit: 39).count == 39)
    }

    @Test func `eight threads that increment with a condition lose none`() throws {
        let keyspace = keyspace
        let workers = InThreads(8) { _ in try Counter(keyspace, "n").increment(times: 100) }
        let revisions = try workers.results().flatMap(\.revisions)
        #expect(Set(revisions).count == 800)
        #expect(server.durable() == ["n": "800"])
    }

    @Test func `requests of many threads are answered each by its own reply`() throws {
        let keyspace = keyspace
        let workers = InThreads(16) { number in
            let key = try Key("k\(number)")
            return try (0..<50).allSatisfy { round in
                let value = [UInt8](text: "\(number) \(round)")
                try keyspace.apply([.set(key, value)])
                return try keyspace.entry(for: key)?.value == value
            }
        }
        #expect(try workers.results() == Array(repeating: true, count: 16))
    }

    @Test func `Visible: the event of a commit comes before its answer, and before a conflict's`()
        throws
    {
        let recorder = WatchRecorder()
        let watch = keyspace.watch(recorder.take)
        watch.include(["n"])
        #expect(recorder.waits { $0.revision != nil })
        let late = Observed((count: 0, late: 0))
        for round in 1...1_000 {
            let (revision, value) = (Int64(round - 1), [UInt8](text: round))
            // The second finds that the first was there.
            for _ in 0..<2 {
                keyspace.submit([.set("n", value, ifRevision: revision)]) { result in
                    let told = recorder.told.current
                    let isTold = told.values["n"] == "\(round)"
                    late.update {
                        $0.count += 1
                        if !isTold { $0.late += 1 }
                    }
                }
            }
            #expect(late.wait { $0.count == round * 2 })
        }
        #expect(late.current.late == 0)
        #expect(recorder.told.current.faults == [])
    }

    @Test func `a writer that asks for memory does not wait for storage`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        let keyspace = try RemoteKeyspace(socket: server.socketPath)
        let answer = Observed<Result<Int64, StateError>?>(nil)
        keyspace.submit([.set("k", [1])], durability: .memory) { result in
            answer.update { $0 = result }
        }
        #expect(answer.wait { $0 == .success(1) })
        #expect(server.durable() == [:])
        backing.open()
    }

    @Test func `one keyspace is shared for each socket, as long as somebody holds it`() throws {
        var shared: RemoteKeyspace? = try .shared(socket: server.socketPath)
        weak let first = shared
        #expect(try RemoteKeyspace.shared(socket: server.socketPath) === first)
        shared = nil
        #expect(first == nil)
        let second = try RemoteKeyspace.shared(socket: server.socketPath)
        second.close()
        let third = try RemoteKeyspace.shared(socket: server.socketPath)
        #expect(third !== second)
        try third.apply([.set("k", [])])
    }

    @Test func `a released keyspace answers what waits, and then its connection goes`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing)
        let answer = Observed<Result<Int64, StateError>?>(nil)
        do {
            let keyspace = try RemoteKeyspace(socket: server.socketPath)
            keyspace.submit([.set("k", [])]) { result in answer.update { $0 = result } }
        }
        #expect(backing.held() != nil)
        backing.open()
        #expect(answer.wait { $0 == .success(1) })
        try server.waitForClients(0)
    }

    @Test func `No hidden deadlock: a completion that waits for its keyspace ends the process`()
        async throws
    {
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let server = try ServedKeyspace()
            let keyspace = try RemoteKeyspace(socket: server.socketPath)
            let isDone = Observed(false)
            keyspace.submit([]) { _ in
                _ = try? keyspace.entry(for: "k")
                isDone.update { $0 = true }
            }
            _ = isDone.wait { $0 }
        }
        let words = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(words.contains("must not wait for it"))
    }

    @Test(arguments: ["with blank", "ä", String(repeating: "x", count: 257)])
    func `a name that no client can have is refused`(name: String) {
        #expect(throws: StateError.self) { try RemoteKeyspace(socket: "/s", name: name) }
    }
}

/// Increments a number that others increment, too.
struct Counter {
    let keyspace: any Keyspace
    let key: Key

    /// What became of the increments.
    struct Outcome {
        /// Of those that were acknowledged.
        var revisions: Set<Int64> = []
        var unknownCount = 0
    }

    init(_ keyspace: any Keyspace, _ key: Key) {
        self.keyspace = keyspace
        self.key = key
    }

    /// Adds 1 so often, each time until it is done or nobody knows whether it is.
    func increment(times: Int) throws -> Outcome {
        var outcome = Outcome()
        var count = 0
        while count < times {
            do throws(StateError) {
                outcome.revisions.insert(try incrementOnce())
                count += 1
            } catch {
                switch error.code {
                case .conflict, .unreachable: continue
                case .outcomeUnknown:
                    outcome.unknownCount += 1
                    count += 1
                default: throw error
                }
            }
        }
        return outcome
    }

    private func incrementOnce() throws(StateError) -> Int64 {
        let entry = try keyspace.entry(for: key)
        let old = entry.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
        return try keyspace.apply([
            .set(key, Array(text: old + 1), ifRevision: entry?.revision ?? 0)
        ])
    }
}

/// The same work in several threads at once.
final class InThreads<Result: Sendable>: Sendable {
    private let threads: [WorkerThread]
    private let ended = Observed<[Swift.Result<Result, any Error>]>([])

    init(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Result) {
        threads = (0..<count).map { WorkerThread(name: "test-\($0)") }
        for (number, thread) in threads.enumerated() {
            thread.start { [ended] in
                let result = Swift.Result { try body(number) }
                ended.update { $0.append(result) }
            }
        }
    }

    /// Waits for them; what each of them came to, in the order in which they ended.
    func results() throws -> [Result] {
        for thread in threads { thread.join() }
        return try ended.current.map { try $0.get() }
    }
}
