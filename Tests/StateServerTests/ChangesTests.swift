import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// STATE.CHANGES, for clients that ask.
struct ChangesTests {
    private let store: GatedStore
    private let server: ServedKeyspace

    init() throws {
        store = try GatedStore()
        server = try ServedKeyspace(store)
    }

    private var epoch: String { server.keyspace.withCore { $0.epoch.description } }

    @Test(arguments: [(2, "(nil)"), (3, "(nil)")])
    func `the commits since a revision, in both versions of the protocol`(
        version: Int,
        null: String
    ) throws {
        try server.connect(version).expect(
            """
            > MSET a/1 1 b 1
            > SET a/2 2
            > DEL a/1
            > SET b 3
            > SET a/1 ""
            > STATE.CHANGES SINCE 0 a/
            > STATE.CHANGES SINCE 2 a/1 b
            > STATE.CHANGES SINCE 2 PREVIOUS /
            > STATE.CHANGES SINCE 0 COUNT 2 a/
            > STATE.CHANGES SINCE 0 COUNT 1 b
            > STATE.CHANGES SINCE 3 COUNT 1 none/
            > STATE.CHANGES SINCE 5 /
            +OK
            +OK
            1
            +OK
            +OK
            ["ok", 5, [[1, [["a/1", "1"]]], [2, [["a/2", "2"]]], [3, [["a/1", \(null)]]], \
            [5, [["a/1", ""]]]]]
            ["ok", 5, [[3, [["a/1", \(null)]]], [4, [["b", "3"]]], [5, [["a/1", ""]]]]]
            ["ok", 5, [[3, [["a/1", \(null), "1"]]], [4, [["b", "3", "1"]]], \
            [5, [["a/1", "", \(null)]]]]]
            ["ok", 2, [[1, [["a/1", "1"]]], [2, [["a/2", "2"]]]]]
            ["ok", 1, [[1, [["b", "1"]]]]]
            ["ok", 5, []]
            ["ok", 5, []]
            """
        )
    }

    @Test(arguments: Seed.each(3))
    func `pages of any size are every commit, once and whole, with what it replaced`(
        seed: UInt64
    ) throws {
        var random = SplitMix(seed: seed)
        var model = PastModel()
        let (peer, watcher) = try (server.connect(3), server.connect(3))
        let pattern = ["/", "a/", "*x*"].randomElement(using: &random) ?? "/"
        _ = try watcher.ask("STATE.WATCH \(pattern) PREVIOUS")
        for _ in 0..<Extent.rounds(200) { try model.step(peer, &random) }
        var paged: [Reply] = []
        var next: Int64 = 0
        while next < model.revision {
            let count = Int.random(in: 1...9, using: &random)
            let line = "STATE.CHANGES SINCE \(next) COUNT \(count) PREVIOUS \(pattern)"
            let page = try #require(try peer.ask(line).elements)
            let commits = try #require(page[2].elements)
            #expect(page[0].textValue == "ok" && commits.count <= count)
            let reached = try #require(page[1].integerValue)
            try #require(reached > next)
            next = reached
            paged += commits
        }
        try watcher.send("PING")
        var told: [Reply] = []
        while case .push(let parts) = try watcher.next() {
            told.append(.array([parts[2], parts[3]]))
        }
        try #require(paged == told, "seed \(seed)")
        // In one page it is the same.
        let whole = try peer.ask("STATE.CHANGES SINCE 0 PREVIOUS \(pattern)")
        #expect(whole.elements?[2] == .array(told))
    }

    @Test func `a reply stays about a megabyte, and never splits a commit`() throws {
        let peer = try server.connect(3)
        let value = String(repeating: "v", count: 400 << 10)
        for key in 1...4 { _ = try peer.ask("SET k\(key) \(value)") }
        _ = try peer.ask("MSET a \(value) b \(value) c \(value) d \(value)")
        _ = try peer.ask("SET end 1")
        var sizes: [[Int]] = []
        var next: Int64 = 0
        while next < 6 {
            let page = try #require(try peer.ask("STATE.CHANGES SINCE \(next) PREVIOUS /").elements)
            next = try #require(page[1].integerValue)
            let commits = page[2].elements ?? []
            sizes.append(commits.map { $0.elements?[1].elements?.count ?? 0 })
        }
        #expect(sizes == [[1, 1], [1, 1], [4], [1]])
    }

    @Test func `a commit of more than a reply may be is TOOBIG, naming it`() throws {
        let server = try ServedKeyspace(try GatedStore()) { $0.replyByteCount = 1_000 }
        let peer = try server.connect(3)
        _ = try peer.ask("SET a 1")
        let value = String(repeating: "v", count: 600)
        _ = try peer.ask("MSET a \(value) b \(value)")
        let error =
            "TOOBIG the commit at revision 2 has more than 1000 bytes, the limit of a reply; "
        #expect(
            try peer.ask("STATE.CHANGES SINCE 1 /").errorText
                == error + "ask for fewer keys at once"
        )
        #expect(try peer.ask("STATE.CHANGES SINCE 1 a").elements?[1] == .integer(2))
        #expect(try peer.ask("STATE.CHANGES SINCE 9 /").errorText?.hasPrefix("TOOBIG") == true)
    }

    // MARK: Gaps

    @Test func `what cannot be gone on from is a gap, with the state`() throws {
        let peer = try server.connect(3)
        for command in ["SET a 1", "SET b 2", "SET a 3", "DEL b"] { _ = try peer.ask(command) }
        let state = #"4, [["a", "3", 3]]"#
        #expect(try peer.ask("STATE.CHANGES SINCE 5 /").shown == "[\"gap\", \(state)]")
        let other = "STATE.CHANGES SINCE 4 EPOCH 123abc BLOCK 0 a"
        #expect(try peer.ask(other).shown == "[\"gap\", \(state), \"\(epoch)\"]")
        #expect(
            try peer.ask("STATE.CHANGES SINCE 3 EPOCH \(epoch) /").shown
                == #"["ok", 4, [[4, [["b", (nil)]]]], "\#(epoch)"]"#
        )
        store.compact(to: 2)
        #expect(try peer.ask("STATE.CHANGES SINCE 1 /").shown == "[\"gap\", \(state)]")
        #expect(try peer.ask("STATE.CHANGES SINCE 1 BLOCK 0 b").shown == #"["gap", 4, []]"#)
        #expect(
            try peer.ask("STATE.CHANGES SINCE 2 /").shown
                == #"["ok", 4, [[3, [["a", "3"]]], [4, [["b", (nil)]]]]]"#
        )
    }

    @Test func `EPOCH 0 begins: the state, and the epoch to go on with`() throws {
        let peer = try server.connect(3)
        _ = try peer.ask("SET a 1")
        let first = try #require(try peer.ask("STATE.CHANGES SINCE 0 EPOCH 0 /").elements)
        #expect(first.prefix(3).map(\.shown) == [#""gap""#, "1", #"[["a", "1", 1]]"#])
        let told = try #require(first[3].textValue)
        #expect(told == epoch)
        _ = try peer.ask("SET a 2")
        let second = try peer.ask("STATE.CHANGES SINCE 1 EPOCH \(told) BLOCK 0 /")
        #expect(second.shown == #"["ok", 2, [[2, [["a", "2"]]]], "\#(told)"]"#)
    }

    @Test func `values in memory: waiting tells of commits, what was before is a gap`() throws {
        let server = try ServedKeyspace()
        let (peer, writer) = try (server.connect(3), server.connect())
        for value in 1...2 { _ = try writer.ask("SET k \(value)") }
        #expect(try peer.ask("STATE.CHANGES SINCE 1 /").shown == #"["gap", 2, [["k", "2", 2]]]"#)
        try peer.send("STATE.CHANGES SINCE 2 BLOCK 0 PREVIOUS k")
        try server.catchUp()
        _ = try writer.ask("SET k 3")
        #expect(try peer.next().shown == #"["ok", 3, [[3, [["k", "3", "2"]]]]]"#)
    }

    @Test(arguments: [
        ("STATE.CHANGES SINCE x /", "ERR revision 'x' is not a whole number of at least 0"),
        ("STATE.CHANGES 0 SINCE /", "ERR syntax error: STATE.CHANGES begins with SINCE revision"),
        ("STATE.CHANGES SINCE 0 PREVIOUS", "ERR syntax error: STATE.CHANGES needs a pattern"),
        ("STATE.CHANGES SINCE 0 COUNT 0 /", "ERR COUNT '0' is not a whole number of at least 1"),
        (
            "STATE.CHANGES SINCE 0 BLOCK -1 /",
            "ERR BLOCK '-1' is not a number of milliseconds from 0 (forever) to 2147483647"
        ),
        (
            "STATE.CHANGES SINCE 0 EPOCH here /",
            "ERR EPOCH 'here' is not an epoch: expected 16 hexadecimal digits, as in STATE.STATUS, or 0 for none"
        ),
    ])
    func `a request that makes no sense is refused by name`(command: String, error: String) throws {
        #expect(try server.connect().ask(command).errorText == error)
    }

    // MARK: Waiting

    @Test func `BLOCK waits for the next commit that matches, and is told of nothing else`() throws
    {
        let (peer, writer) = try (server.connect(2), server.connect())
        _ = try writer.ask("SET a/1 1")
        try peer.send("STATE.CHANGES SINCE 1 BLOCK 0 a/", "PING")
        _ = try writer.ask("SET b 1")
        try server.catchUp()
        #expect(try peer.arrived() == [])
        _ = try writer.ask("MSET a/1 2 a/2 2 b 2")
        #expect(try peer.next().shown == #"["ok", 3, [[3, [["a/1", "2"], ["a/2", "2"]]]]]"#)
        #expect(try peer.next() == .simple("PONG"))
        #expect(try writer.ask("STATE.STATUS")["watches"] == .integer(0))
    }

    @Test func `where the time is over, next is the revision of then`() throws {
        let (peer, writer) = try (server.connect(), server.connect())
        try peer.send("STATE.CHANGES SINCE 0 BLOCK 300 a/")
        for _ in 0..<2 { _ = try writer.ask("SET b 1") }
        #expect(try peer.next().shown == #"["ok", 2, []]"#)
        #expect(try peer.ask("STATE.CHANGES SINCE 1 BLOCK 1 a/").shown == #"["ok", 2, []]"#)
        #expect(try writer.ask("STATE.STATUS")["watches"] == .integer(0))
    }

    @Test func `durable before told`() throws {
        let (peer, writer) = try (server.connect(), server.connect())
        try peer.send("STATE.CHANGES SINCE 0 BLOCK 0 /")
        try server.catchUp()
        store.holdCommits()
        try writer.send("SET k 1")
        try #require(store.waitForCommit())
        try server.catchUp()
        #expect(try peer.arrived() == [])
        #expect(try server.connect().ask("STATE.CHANGES SINCE 0 /").shown == #"["ok", 0, []]"#)
        store.openCommits()
        #expect(try peer.next().shown == #"["ok", 1, [[1, [["k", "1"]]]]]"#)
    }

    @Test func `what comes while the history is read for it is not missed`() throws {
        let (peer, writer) = try (server.connect(), server.connect())
        for _ in 0..<2 { _ = try writer.ask("SET b 1") }
        store.holdReading()
        try peer.send("STATE.CHANGES SINCE 1 BLOCK 0 a/")
        try #require(store.waitForReader())
        for value in 3...4 { _ = try writer.ask("SET a/1 \(value)") }
        store.openReading()
        #expect(
            try peer.next().shown == #"["ok", 4, [[3, [["a/1", "3"]]], [4, [["a/1", "4"]]]]]"#
        )
    }

    @Test func `the connection's own write is told after its reply`() throws {
        let peer = try server.connect()
        store.holdCommits()
        try peer.send("SET k 1", "STATE.CHANGES SINCE 0 BLOCK 0 /", "GET k")
        try #require(store.waitForCommit())
        try server.catchUp()
        #expect(try peer.arrived() == [])
        store.openCommits()
        #expect(
            try peer.next(3).map(\.shown) == ["+OK", #"["ok", 1, [[1, [["k", "1"]]]]]"#, #""1""#]
        )
    }

    @Test func `a commit that its writer was told of early is no revision from the future`() throws
    {
        let peer = try server.connect(3)
        store.holdCommits()
        let told = try peer.ask("STATE.SET k 1 DURABILITY memory")
        #expect(told["revision"] == .integer(1))
        try peer.send("STATE.CHANGES SINCE 1 /")
        try #require(store.waitForCommit())
        try server.catchUp()
        #expect(try peer.arrived() == [])
        store.openCommits()
        #expect(try peer.next().shown == #"["ok", 1, []]"#)
    }

    @Test func `who waits is answered when the daemon stops`() throws {
        let peer = try server.connect()
        _ = try peer.ask("SET b 1")
        try peer.send("STATE.CHANGES SINCE 1 BLOCK 0 a/")
        try server.catchUp()
        server.requestStop()
        #expect(try peer.rest().map(\.shown) == [#"["ok", 1, []]"#])
    }

    @Test func `who waits and leaves leaves nothing behind`() throws {
        let (peer, probe) = try (server.connect(), server.connect(3))
        try peer.send("STATE.CHANGES SINCE 0 BLOCK 0 a/ b *c*")
        try server.waitUntil("one that waits") {
            try probe.ask("STATE.STATUS")["watches"] == .integer(1)
        }
        peer.socket.end()
        try server.waitUntil("nobody that waits") {
            try probe.ask("STATE.STATUS")["watches"] == .integer(0)
        }
        _ = try probe.ask("SET b 1")
        probe.socket.end()
        #expect(try server.faultsAfterLeaving() == [])
    }

    @Test(arguments: Seed.each(2))
    func `who asks again and again is told every commit once, while others write`(
        seed: UInt64
    ) throws {
        let path = server.socketPath
        let rounds = Extent.rounds(1_500)
        let told = Observed<[String]>([])
        onThreads(3) { number in
            do {
                let peer = try Peer(path)
                guard number == 2 else {
                    for round in 0..<rounds {
                        // What the other writes is of the same revisions, and not asked for.
                        _ = try peer.ask("SET \(number == 0 ? "a/k" : "b/k") \(round)")
                    }
                    return
                }
                var random = SplitMix(seed: seed)
                var next: Int64 = 0
                while told.current.count < rounds {
                    let count = Int.random(in: 1...20, using: &random)
                    let line = "STATE.CHANGES SINCE \(next) COUNT \(count) BLOCK 20000 a/"
                    let page = try peer.ask(line).elements ?? []
                    guard page.count == 3, let reached = page[1].integerValue else {
                        throw SystemFailure("a page of another form")
                    }
                    next = reached
                    let values = (page[2].elements ?? []).map {
                        $0.elements?[1].elements?[0].elements?[1].textValue ?? ""
                    }
                    told.update { $0 += values }
                }
            } catch {
                Issue.record("seed \(seed): \(error)")
            }
        }
        #expect(told.current == (0..<rounds).map(String.init))
    }
}
