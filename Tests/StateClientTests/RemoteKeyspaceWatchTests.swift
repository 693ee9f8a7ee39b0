import Glibc
import StateClient
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What a watch of the daemon's keyspace is told.
struct RemoteKeyspaceWatchTests {
    private let server: ServedKeyspace
    private let keyspace: RemoteKeyspace
    private let recorder = WatchRecorder()

    init() throws {
        server = try ServedKeyspace(HeldBacking(isHeld: false))
        keyspace = try RemoteKeyspace(socket: server.socketPath)
    }

    private func set(_ values: [Key: String]) throws {
        try server.keyspace.apply(values.map { .set($0.key, Array(text: $0.value)) })
    }

    @Test func `it begins with the state, then tells each commit`() throws {
        try set(["a/1": "x", "b": "y", "c": "z"])
        let watch = keyspace.watch(recorder.take)
        watch.include(["a/", "b", "absent"])
        #expect(recorder.waits(forEvent: "state 1 of a/ absent b: a/1=x b=y"))
        try set(["c": "other"])
        try set(["a/2": "1", "b": "2", "c": "3"])
        try server.keyspace.apply([.delete("a/1"), .set("absent", [])])
        #expect(recorder.waits { $0.revision?.number == 4 })
        #expect(recorder.shown.suffix(2) == ["commit 3 a/2=1 b=2", "commit 4 a/1 absent="])
        guard case .commit(let revision, let changes, let cause) = recorder.told.current.events[2]
        else { return }
        #expect(revision.epoch == server.keyspace.epoch)
        #expect(cause.pid == getpid())
        #expect(changes.map(\.revision).sorted() == [0, 4])
        #expect(recorder.told.current.faults == [])
    }

    @Test func `what is included later comes with its state, and what is excluded stops`() throws {
        let watch = keyspace.watch(recorder.take)
        watch.include(["a"])
        #expect(recorder.waits(forEvent: "state 0 of a: "))
        try set(["a": "1", "b": "1"])
        watch.include(["b"])
        #expect(recorder.waits(forEvent: "state 1 of b: b=1"))
        watch.include(["b"])
        #expect(recorder.waits { $0.events.count { $0.shown == "state 1 of b: b=1" } == 2 })
        watch.exclude(["b"])
        try set(["a": "2", "b": "2"])
        #expect(recorder.waits(forEvent: "commit 2 a=2 b=2"))
        watch.exclude(["b"])
        try set(["a": "3", "b": "3"])
        #expect(recorder.waits(forEvent: "commit 3 a=3"))
        #expect(recorder.told.current.faults == [])
    }

    @Test func `who writes is told by process and name`() throws {
        let watch = keyspace.watch(recorder.take)
        watch.include([.everything])
        #expect(recorder.waits { $0.revision != nil })
        let writer = try Client(socket: server.socketPath, name: "mixer")
        try writer.set([1], for: "k")
        #expect(recorder.waits { $0.revision?.number == 1 })
        guard case .commit(_, let changes, let cause)? = recorder.told.current.events.last
        else { return }
        #expect(cause.client == "mixer" && cause.pid == getpid())
        #expect(changes[0].cause == cause)
    }

    @Test(arguments: Seed.each(4))
    func `patterns that come and go under load lose nothing and repeat nothing`(
        seed: UInt64
    )
        throws
    {
        var random = SplitMix(seed: seed)
        let audit = CountAudit()
        let watch = keyspace.watch(audit.take)
        watch.include(["base"])
        let keyspace = server.keyspace
        let writer = InThreads(1) { _ in
            var random = SplitMix(seed: seed &+ 1)
            var counts = [Int](repeating: 0, count: 9)
            for round in 1...4_000 {
                var mutations: [Mutation] = [.set("base", Array(text: round))]
                for number in counts.indices where random.chance(30) {
                    counts[number] += 1
                    let key = try Key("\(number % 3)/\(number)")
                    mutations.append(.set(key, Array(text: counts[number])))
                }
                try keyspace.apply(mutations)
            }
        }
        let choices: [Pattern] = ["0/", "1/", "2/", "0/0", "1/4", "2/8", "?/[036]"]
        var included: [Pattern] = []
        while audit.waits(beforeBase: 4_000) {
            let some = choices.filter { _ in random.chance(30) }
            if random.chance(50) {
                watch.include(some)
                included += some
            } else {
                included.shuffle(using: &random)
                let gone = included.prefix(Int(random.next() % 4))
                watch.exclude(Array(gone))
                included.removeFirst(gone.count)
            }
        }
        _ = try writer.results()
        watch.include(choices)
        #expect(audit.waits(for: server.durable()))
        #expect(audit.faults == [])
    }

    @Test func `a watch that falls behind is told of it by a state, and converges`() throws {
        let server = try ServedKeyspace(HeldBacking(isHeld: false)) {
            $0.outputByteCount = 64 << 10
        }
        let keyspace = try RemoteKeyspace(socket: server.socketPath)
        let (recorder, gate) = (recorder, Observed(false))
        let watch = keyspace.watch { event in
            recorder.take(event)
            if case .commit = event { _ = gate.wait { $0 } }
        }
        watch.include(["a/"])
        #expect(recorder.waits { $0.revision != nil })
        let value = String(repeating: "x", count: 10_000)
        for number in 0..<400 {
            let mutation = Mutation.set(
                try Key("a/\(number % 40)"),
                [UInt8](text: "\(number)\(value)")
            )
            try server.keyspace.apply([mutation])
        }
        // It is begun anew while it is behind.
        watch.include(["b"])
        try server.keyspace.apply([.set("b", [])])
        gate.update { $0 = true }
        let durable = server.durable()
        #expect(recorder.waits { $0.values == durable })
        #expect(recorder.told.current.faults == [])
        #expect(recorder.told.current.events.count < 300)
        try server.keyspace.apply([.set("a/0", []), .set("b", [1])])
        let end = server.durable()
        #expect(recorder.waits { $0.values == end })
    }

    @Test func `Visible: an answer waits for the state of a watch that has fallen behind`() throws {
        let backing = HeldBacking()
        let server = try ServedKeyspace(backing) {
            $0.outputByteCount = 64 << 10
            $0.limits.queueByteCount = 1 << 30
        }
        let keyspace = try RemoteKeyspace(socket: server.socketPath)
        let watch = keyspace.watch(recorder.take)
        watch.include([.everything])
        #expect(recorder.waits { $0.revision != nil })
        let (writer, value) = (try server.connect(), String(repeating: "x", count: 50_000))
        try writer.send("SET first 1")
        #expect(backing.held() != nil)
        for number in 0..<100 { try writer.send("SET k\(number) \(value)") }
        try server.catchUp()
        let seen = Observed<String?>(nil)
        keyspace.submit([.set("mine", [0x31])]) { [recorder] _ in
            let value = recorder.told.current.values["mine"]
            seen.update { $0 = value ?? "nothing" }
        }
        try server.waitUntil("the write") {
            server.keyspace.withCore { $0.revisions.provisional == 102 }
        }
        backing.open()
        #expect(seen.wait { $0 == "1" })
        #expect(recorder.told.current.events.count < 100)
        #expect(recorder.told.current.faults == [])
    }

    @Test func `more patterns than the daemon takes are refused, the others stay`() throws {
        let watch = keyspace.watch(recorder.take)
        let many = try (0..<1_000).map { try Pattern("k/\($0)") }
        watch.include(many)
        #expect(recorder.waits { $0.revision != nil })
        watch.include(["more"])
        #expect(recorder.waits(forEvent: "refused more"))
        watch.include(Array(many[0..<3]))
        watch.exclude([many[999]])
        watch.include(["more"])
        #expect(recorder.waits { $0.events.contains { $0.shown.hasSuffix(" more: ") } })
        try set(["more": "1", "k/7": "1", "k/999": "1"])
        #expect(recorder.waits(forEvent: "commit 1 k/7=1 more=1"))
    }

    @Test func `what the daemon refuses is refused, and what was followed is followed`() throws {
        let server = try ServedKeyspace(HeldBacking(isHeld: false)) { $0.watchCount = 2 }
        let keyspace = try RemoteKeyspace(socket: server.socketPath)
        let watch = keyspace.watch(recorder.take)
        watch.include(["a", "b"])
        #expect(recorder.waits(forEvent: "state 0 of a b: "))
        watch.include(["c"])
        #expect(recorder.waits(forEvent: "refused c"))
        try server.keyspace.apply([.set("a", [0x31]), .set("c", [])])
        #expect(recorder.waits { $0.values == ["a": "1"] })
    }

    @Test func `a watch that is cancelled or released is heard no more, nor kept by the daemon`()
        throws
    {
        let first = keyspace.watch(recorder.take)
        var second: (any KeyspaceWatch)? = keyspace.watch(recorder.take)
        first.include([.everything])
        second?.include([.everything])
        #expect(recorder.waits { $0.events.count == 2 })
        let peer = try server.connect(3)
        #expect(try peer.ask("STATE.STATUS")["watches"] == .integer(2))
        first.cancel()
        second = nil
        try server.waitUntil("no watches") {
            try peer.ask("STATE.STATUS")["watches"] == .integer(0)
        }
        try keyspace.apply([.set("k", [])])
        #expect(recorder.told.current.events.count == 2)
        first.include([.everything])
        try keyspace.apply([.set("k", [])])
        #expect(recorder.told.current.events.count == 2)
    }
}

/// Follows keys whose values count up by one with each commit that sets them, so that a change that is lost or repeated shows.
private final class CountAudit: Sendable {
    private struct State {
        var counts: [Key: Int] = [:]
        var eventCount = 0
        var faults: [String] = []
        var revision: Int64 = 0
    }

    private let state = Observed(State())

    var faults: [String] { state.current.faults }

    func take(_ event: KeyspaceEvent) {
        state.update { state in
            state.eventCount += 1
            switch event {
            case .state(let revision, let patterns, let changes):
                if revision.number < state.revision { state.faults.append("\(event.shown)") }
                state.revision = revision.number
                let set = PatternSet(patterns)
                state.counts = state.counts.filter { count in
                    !count.key.bytes.withUnsafeBytes { set.matches($0) }
                }
                for change in changes { state.counts[change.key] = change.number }
            case .commit(let revision, let changes, _):
                if revision.number <= state.revision { state.faults.append("\(event.shown)") }
                state.revision = revision.number
                for change in changes {
                    let old = state.counts[change.key]
                    if let old, change.number != old + 1 {
                        state.faults.append("\(change.key) after \(old): \(event.shown)")
                    }
                    state.counts[change.key] = change.number
                }
            case .away, .resumed, .refused: state.faults.append(event.shown)
            }
        }
    }

    /// Waits until more is told; false once `base` has come to `count`.
    func waits(beforeBase count: Int) -> Bool {
        let before = state.current.eventCount
        return state.take { state -> Bool? in
            if state.counts["base"] == count { return false }
            return state.eventCount > before ? true : nil
        } ?? false
    }

    func waits(for values: [String: String]) -> Bool {
        state.wait { state in
            values.allSatisfy { state.counts[Key(stringLiteral: $0.key)] == Int($0.value) }
        }
    }
}

extension KeyspaceChange {
    fileprivate var number: Int {
        value.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
    }
}
