import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// STATE.REVERT: going back is going forward.
struct RevertTests {
    private let store: GatedStore
    private let server: ServedKeyspace

    init() throws {
        store = try GatedStore()
        server = try ServedKeyspace(store)
    }

    @Test(arguments: Seed.each(2))
    func `REVERT gives exactly what LIST AT tells, as one commit that watchers see`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        var model = PastModel()
        let (peer, watcher) = try (server.connect(3), server.connect(3))
        for _ in 0..<40 { try model.step(peer, &random) }
        for round in 0..<Extent.rounds(30) {
            for _ in 0..<4 { try model.step(peer, &random) }
            let revision = Int64.random(in: 0...model.revision, using: &random)
            let pattern = PastModel.patterns.randomElement(using: &random) ?? "/"
            _ = try watcher.ask("STATE.WATCH /")
            let before = model.current
            try revert(pattern, to: revision, peer, &model)
            let list = "STATE.LIST \(pattern)"
            let then = try peer.ask("\(list) AT \(revision)").listing
            try #require(try peer.ask(list).listing == then, "seed \(seed)")
            #expect(try peer.ask("STATE.LIST /").listing == model.current.listing)
            let told = try changedKeys(watcher, watch: round + 1)
            let changed = Set(before.keys).union(model.current.keys)
                .filter { before[$0] != model.current[$0] }
            #expect(told == (changed.isEmpty ? [] : [changed.sorted()]))
            // A revert of a revert brings back what was there.
            guard !changed.isEmpty else { continue }
            try revert(pattern, to: model.revision - 1, peer, &model)
            #expect(try peer.ask("STATE.LIST /").listing == before.listing)
            #expect(model.current == before)
        }
    }

    private func revert(
        _ pattern: String,
        to revision: Int64,
        _ peer: Peer,
        _ model: inout PastModel
    ) throws {
        var next = model.current.filter { !PastModel.matches(pattern, $0.key) }
        next.merge(model.state(pattern, at: revision)) { $1 }
        let differing = Set(next.keys).union(model.current.keys)
            .filter { next[$0] != model.current[$0] }
        let present = try peer.ask("STATE.LIST /").listing
        let dry = try peer.ask("STATE.REVERT \(pattern) TO \(revision) DRYRUN")
        let keys = dry["changes"]?.elements?.compactMap { $0.elements?.first?.textValue }
        #expect(keys == differing.sorted())
        #expect(try peer.ask("STATE.LIST /").listing == present)
        let reply = try peer.ask("STATE.REVERT \(pattern) TO \(revision)")
        #expect(reply["count"] == .integer(Int64(differing.count)))
        try model.take(reply, next)
    }

    /// The keys of each commit that a watch was told of; it ends.
    private func changedKeys(_ watcher: Peer, watch: Int) throws -> [[String]] {
        try watcher.send("STATE.UNWATCH \(watch)")
        var commits: [[String]] = []
        while true {
            let reply = try watcher.next()
            guard case .push(let parts) = reply else { return commits }
            commits.append((parts[3].elements ?? []).map { $0.elements?[0].textValue ?? "" })
        }
    }

    @Test func `a revert is an event with the cause of who asked for it`() throws {
        let (peer, watcher) = try (server.connect(3), server.connect(3))
        for command in ["SET a/1 1", "SET a/2 2", "MSET a/1 3 a/3 3"] { _ = try peer.ask(command) }
        _ = try watcher.ask("STATE.WATCH a/ BY PREVIOUS")
        _ = try peer.ask("CLIENT SETNAME admin")
        try peer.expect(
            """
            > STATE.REVERT a/ TO 2
            > STATE.REVERT a/ TO 2
            > STATE.LIST /
            > STATE.HISTORY a/3
            {"revision": 4, "count": 2}
            {"revision": 4, "count": 0}
            [["a/1", "1", 4], ["a/2", "2", 2]]
            [{"revision": 4, "value": (nil), "time": …, "by": …}, \
            {"revision": 3, "value": "3", "time": …, "by": …}]
            """
        )
        let push = try watcher.next().shown
        #expect(
            push.hasPrefix(
                #"push["state.change", 1, 4, [["a/1", "1", "3"], ["a/3", (nil), "3"]], ""#
            )
        )
        #expect(push.hasSuffix(#":admin"]"#))
        #expect(try watcher.arrived() == [])
    }

    @Test func `what others write while the history is read is reverted too`() throws {
        let (writer, reverter) = try (server.connect(), server.connect(3))
        for command in ["MSET a 1 b 1 c 1", "SET a 2"] { _ = try writer.ask(command) }
        store.holdReading()
        try reverter.send("STATE.REVERT / TO 1")
        try #require(store.waitForReader())
        for command in ["DEL b", "SET c 3", "SET d 3"] { _ = try writer.ask(command) }
        store.holdCommits()
        try writer.send("SET b 4", "SET e 4", "DEL c")
        try #require(store.waitForCommit())
        store.openReading()
        try server.catchUp()
        #expect(try reverter.arrived() == [], "it stands on what is not durable")
        store.openCommits()
        #expect(try reverter.next()["count"] == .integer(5))
        #expect(
            try reverter.ask("STATE.LIST /").listing == [["a", "1"], ["b", "1"], ["c", "1"]]
        )
    }

    @Test func `to the current revision, it takes back what is not durable yet`() throws {
        let (writer, reverter) = try (server.connect(), server.connect(3))
        _ = try writer.ask("MSET a 1 b 1")
        store.holdCommits()
        try writer.send("SET a 2", "DEL b", "SET c 2")
        try #require(store.waitForCommit())
        try reverter.send("STATE.REVERT / TO 1")
        try server.catchUp()
        #expect(try reverter.arrived() == [])
        store.openCommits()
        #expect(try reverter.next()["count"] == .integer(3))
        #expect(try reverter.ask("STATE.LIST /").listing == [["a", "1"], ["b", "1"]])
        #expect(try reverter.ask("STATE.LIST / AT 4").listing == [["a", "2"], ["c", "2"]])
    }

    @Test func `more than a transaction may hold is refused whole`() throws {
        let server = try ServedKeyspace(try GatedStore()) { $0.limits.transactionChangeCount = 3 }
        let peer = try server.connect(3)
        for key in 1...4 { _ = try peer.ask("SET k\(key) 1") }
        for key in 1...4 { _ = try peer.ask("SET k\(key) 2") }
        #expect(
            try peer.ask("STATE.REVERT / TO 4").errorText
                == "TOOBIG a transaction can have at most 3 changes"
        )
        #expect(try peer.ask("STATE.STATUS")["revision"] == .integer(8))
        #expect(try peer.ask("STATE.REVERT k[123] TO 4")["count"] == .integer(3))
        #expect(try peer.ask("MGET k1 k2 k3 k4").shown == #"["1", "1", "1", "2"]"#)
    }

    @Test func `it waits for room as any write does`() throws {
        let store = try GatedStore()
        let server = try ServedKeyspace(store) { $0.limits.queueByteCount = 100 }
        let (writer, reverter) = try (server.connect(), server.connect(3))
        for value in 1...3 { _ = try writer.ask("SET k \(value)") }
        store.holdReading()
        try reverter.send("STATE.REVERT k TO 1")
        try #require(store.waitForReader())
        store.holdCommits()
        try writer.send("SET big \(String(repeating: "v", count: 200))", "SET k 5")
        try #require(store.waitForCommit())
        store.openReading()
        // The history thread has nothing to say any more: only what storage answers lets it go on.
        for _ in 0..<300 { try server.catchUp() }
        #expect(try reverter.arrived() == [])
        store.openCommits()
        #expect(try writer.next(2) == [.simple("OK"), .simple("OK")])
        #expect(try reverter.next()["count"] == .integer(1))
        // Whichever of the two waited longer: neither is lost.
        let value = try writer.ask("GET k").textValue
        #expect(value == "1" || value == "5")
    }

    @Test(arguments: Seed.each(2))
    func `under concurrent writers AT and REVERT tell what was at that revision`(
        seed: UInt64
    ) throws {
        let watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH /")
        let reports = Observed<[Report]>([])
        let (path, rounds) = (server.socketPath, Extent.rounds(600))
        onThreads(4) { number in
            var random = SplitMix(seed: seed &+ UInt64(number))
            do {
                if number < 2 {
                    try Self.writeAtRandom(path, rounds, &random)
                } else {
                    try Self.lookBack(path, rounds / 10, isReverting: number == 3, reports, &random)
                }
            } catch {
                Issue.record("seed \(seed): \(error)")
            }
        }
        // What was, as the watch has told it.
        var states: [Int64: PastModel.State] = [0: [:]]
        let last = try watcher.ask("STATE.STATUS")
        var state: PastModel.State = [:]
        var told: Int64 = 0
        func take(_ reply: Reply) {
            guard case .push(let parts) = reply, let revision = parts[2].integerValue else {
                return
            }
            for change in parts[3].elements ?? [] {
                state[change.elements?[0].textValue ?? ""] = change.elements?[1].textValue
            }
            for missing in told..<revision { states[missing] = states[missing] ?? states[told] }
            states[revision] = state
            told = revision
        }
        take(last)
        try watcher.send("PING")
        while true {
            let reply = try watcher.next()
            if reply == .simple("PONG") { break }
            take(reply)
        }
        let all = reports.current
        #expect(all.count == rounds / 10 * 2)
        for report in all {
            let expected = states[report.revision]?.filter { PastModel.matches("a/", $0.key) }
            try #require(
                states[report.seen ?? -1]?.filter { PastModel.matches("a/", $0.key) } == expected
                    || report.listing == expected?.listing,
                "seed \(seed): revision \(report.revision)"
            )
        }
    }

    /// What one look back, or one going back, has told.
    private struct Report {
        var revision: Int64
        /// What was listed.
        var listing: [[String]]?
        /// Of a revert: the revision at which it should be the same again.
        var seen: Int64?
    }

    private static func writeAtRandom(
        _ path: String,
        _ rounds: Int,
        _ random: inout SplitMix
    ) throws {
        let peer = try Peer(path)
        for round in 0..<rounds {
            let key = PastModel.keys.randomElement(using: &random) ?? "a"
            let other = PastModel.keys.randomElement(using: &random) ?? "b"
            let line =
                random.chance(20) ? "DEL \(key) \(other)" : "MSET \(key) \(round) \(other) \(round)"
            if let error = try peer.ask(line).errorText { throw SystemFailure(error) }
        }
    }

    private static func lookBack(
        _ path: String,
        _ rounds: Int,
        isReverting: Bool,
        _ reports: Observed<[Report]>,
        _ random: inout SplitMix
    ) throws {
        let peer = try Peer(path)
        for _ in 0..<rounds {
            let current = try peer.ask("STATE.STATUS")["revision"]?.integerValue ?? 0
            let revision = Int64.random(in: 0...current, using: &random)
            var report = Report(revision: revision)
            if isReverting {
                let reply = try peer.ask("STATE.REVERT a/ TO \(revision)")
                report.seen = reply["revision"]?.integerValue
                if report.seen == nil { throw SystemFailure(reply.shown) }
            } else {
                report.listing = try peer.ask("STATE.LIST a/ AT \(revision)").listing
            }
            reports.update { $0.append(report) }
        }
    }
}
