import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Looking back: STATE.GET and STATE.LIST with AT, STATE.HISTORY.
struct PastTests {
    private let store: GatedStore
    private let server: ServedKeyspace

    init() throws {
        store = try GatedStore()
        server = try ServedKeyspace(store)
    }

    @Test(arguments: Seed.each(2))
    func `AT tells what there was at every revision`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var model = PastModel()
        let peer = try server.connect(3)
        for _ in 0..<Extent.rounds(150) { try model.step(peer, &random) }
        for revision in 0...model.revision {
            let pattern = PastModel.patterns.randomElement(using: &random) ?? "/"
            let expected = model.state(pattern, at: revision).listing
            let list = "STATE.LIST \(pattern) AT \(revision)"
            try #require(try peer.ask(list).listing == expected, "\(list), seed \(seed)")
            #expect(try peer.ask("\(list) COUNT") == .integer(Int64(expected.count)))
            #expect(try peer.ask("\(list) KEYS").listing == expected.map { [$0[0]] })
            #expect(try pages(of: pattern, at: revision, peer, &random) == expected)
            let key = PastModel.keys.randomElement(using: &random) ?? "a"
            let entry = try peer.ask("STATE.GET \(key) AT \(revision)")
            #expect(entry["value"]?.textValue == model.states[Int(revision)][key])
        }
    }

    private func pages(
        of pattern: String,
        at revision: Int64,
        _ peer: Peer,
        _ random: inout SplitMix
    ) throws -> [[String]] {
        var rows: [[String]] = []
        while true {
            let limit = Int.random(in: 1...4, using: &random)
            let after = rows.last.map { "AFTER \($0[0])" } ?? ""
            let line = "STATE.LIST \(pattern) \(after) LIMIT \(limit) AT \(revision)"
            let page = try peer.ask(line).listing
            rows += page
            if page.count < limit { return rows }
        }
    }

    @Test func `what an entry was has all that STATE.GET and STATE.LIST told then`() throws {
        let peer = try server.connect(3)
        for command in ["SET a 1", "MSET a 2 b 2", "SET a 3"] { _ = try peer.ask(command) }
        let entry = try peer.ask("STATE.GET a")
        let rows = try peer.ask("STATE.LIST / LONG")
        for command in ["DEL a", "SET b 5", "SET a 6"] { _ = try peer.ask(command) }
        #expect(try peer.ask("STATE.GET a AT 3") == entry)
        #expect(try peer.ask("STATE.LIST / AT 3 LONG") == rows)
        #expect(entry["version"] == .integer(3) && entry["created"] == .integer(1))
        // The current revision is one like any other.
        #expect(try peer.ask("STATE.GET a AT 6") == peer.ask("STATE.GET a"))
        #expect(try peer.ask("STATE.LIST / AT 6 LONG") == peer.ask("STATE.LIST / LONG"))
    }

    @Test func `a key that is deleted and made anew, and one that never was`() throws {
        try server.connect(3).expect(
            """
            > SET k 1
            > DEL k
            > SET k 2
            > STATE.LIST k AT 0
            > STATE.LIST k AT 1
            > STATE.LIST k AT 2
            > STATE.LIST k AT 3
            > STATE.GET k AT 2
            > STATE.GET none AT 1
            +OK
            1
            +OK
            []
            [["k", "1", 1]]
            []
            [["k", "2", 3]]
            (nil)
            (nil)
            """
        )
    }

    @Test(arguments: [
        "STATE.GET k AT 3", "STATE.LIST / AT 3", "STATE.LIST / AT 3 COUNT", "STATE.REVERT / TO 3",
    ])
    func `a revision to come is refused, naming it and the current one`(command: String) throws {
        let peer = try server.connect(3)
        for _ in 0..<2 { _ = try peer.ask("SET k 1") }
        let error = "ERR revision 3 is above the current revision 2"
        #expect(try peer.ask(command).errorText == error)
    }

    @Test(arguments: [
        "STATE.GET k AT 1", "STATE.GET none AT 1", "STATE.LIST / AT 1",
        "STATE.LIST none/ AT 1 KEYS",
        "STATE.REVERT / TO 1",
    ])
    func `below the compacted revision it is COMPACTED, and right from there on`(
        command: String
    )
        throws
    {
        let peer = try server.connect(3)
        for value in 1...5 { _ = try peer.ask("SET k \(value)") }
        store.compact(to: 2)
        let error = "COMPACTED revision 1 is compacted; the oldest available is 2"
        #expect(try peer.ask(command).errorText == error)
        #expect(try peer.ask("STATE.GET k AT 2")["value"]?.textValue == "2")
        #expect(try peer.ask("STATE.LIST / AT 2").listing == [["k", "2"]])
        #expect(try peer.ask("GET k").textValue == "5")
    }

    @Test func `the past cannot be read inside of MULTI`() throws {
        let peer = try server.connect(3)
        for command in [
            "STATE.GET k AT 0", "STATE.LIST / AT 0", "STATE.HISTORY k", "STATE.REVERT / TO 0",
            "STATE.CHANGES SINCE 0 /",
        ] {
            _ = try peer.ask("MULTI")
            let refusal = try peer.ask(command).errorText
            #expect(refusal?.hasSuffix("inside MULTI; use it before MULTI or after EXEC") == true)
            #expect(try peer.ask("EXEC").errorText?.hasPrefix("EXECABORT") == true)
        }
    }

    @Test func `values in memory have no past`() throws {
        let server = try ServedKeyspace()
        try server.connect(3).expect(
            """
            > SET k 1
            > SET k 2
            > STATE.LIST / AT 2
            > STATE.LIST / AT 1
            > STATE.GET k AT 1
            > STATE.REVERT / TO 1
            > STATE.HISTORY k
            +OK
            +OK
            [["k", "2", 2]]
            -COMPACTED values in memory have no history
            -COMPACTED values in memory have no history
            -COMPACTED values in memory have no history
            -COMPACTED values in memory have no history
            """
        )
    }

    @Test func `a past that is more than a reply may be is TOOBIG, and to be had in parts`() throws
    {
        let server = try ServedKeyspace(try GatedStore()) { $0.replyByteCount = 4_000 }
        let peer = try server.connect(3)
        let value = String(repeating: "v", count: 1_500)
        for key in 1...4 { _ = try peer.ask("SET k\(key) \(value)") }
        for key in 1...4 { _ = try peer.ask("DEL k\(key)") }
        let error = try peer.ask("STATE.LIST / AT 4").errorText ?? ""
        #expect(error.hasPrefix("TOOBIG") && error.hasSuffix("AFTER to get it in parts"))
        #expect(try peer.ask("STATE.LIST / AT 4 COUNT") == .integer(4))
        #expect(
            try peer.ask("STATE.LIST / AFTER k1 LIMIT 2 AT 4").listing.map(\.[0]) == ["k2", "k3"]
        )
        #expect(try peer.ask("STATE.REVERT / TO 4").errorText?.hasPrefix("TOOBIG") == true)
        #expect(try peer.ask("STATE.LIST / COUNT") == .integer(0))
    }

    // MARK: While others write

    @Test func `what becomes durable while the history is read is not part of what was`() throws {
        let (writer, reader, other) = try (server.connect(), server.connect(3), server.connect(3))
        for command in ["MSET a 1 b 1 c 1 e 1", "SET a 2"] { _ = try writer.ask(command) }
        store.holdReading()
        try reader.send("STATE.LIST / AT 1", "STATE.LIST / LIMIT 2 AT 1", "PING")
        try #require(store.waitForReader())
        for command in ["SET a 3", "DEL b", "SET d 1", "SET c 4", "SET c 5", "DEL d"] {
            #expect(try writer.ask(command).errorText == nil)
        }
        // Those who do not wait for the disk are answered.
        #expect(try other.ask("STATE.LIST / KEYS").listing == [["a"], ["c"], ["e"]])
        store.openReading()
        let then = [["a", "1"], ["b", "1"], ["c", "1"], ["e", "1"]]
        #expect(try reader.next().listing == then)
        #expect(try reader.next().listing == Array(then[..<2]))
        #expect(try reader.next() == .simple("PONG"))
        #expect(try other.ask("STATE.STATUS")["watches"] == .integer(0))
    }

    @Test func `what is not durable yet is not part of what was`() throws {
        let (writer, reader) = try (server.connect(), server.connect(3))
        for command in ["MSET a 1 b 1", "SET a 2"] { _ = try writer.ask(command) }
        store.holdCommits()
        try writer.send("SET a 3", "DEL b", "SET c 3")
        try #require(store.waitForCommit())
        #expect(try reader.ask("STATE.LIST / AT 1").listing == [["a", "1"], ["b", "1"]])
        #expect(try reader.ask("STATE.LIST / AT 2").listing == [["a", "2"], ["b", "1"]])
        #expect(try reader.ask("STATE.GET a AT 2")["value"]?.textValue == "2")
        store.openCommits()
        #expect(try writer.next(3).compactMap(\.errorText) == [])
    }

    @Test func `a client that leaves while the history is read for it leaves nothing behind`()
        throws
    {
        let (writer, probe) = try (server.connect(), server.connect(3))
        for _ in 0..<3 { _ = try writer.ask("SET a 1") }
        store.holdReading()
        var leaving: [Peer] = []
        for command in [
            "STATE.LIST / AT 1", "STATE.REVERT / TO 1", "STATE.CHANGES SINCE 1 BLOCK 0 /",
        ] {
            let peer = try server.connect(3)
            try peer.send(command)
            leaving.append(peer)
        }
        try #require(store.waitForReader())
        try server.waitUntil("3 that follow what changes") {
            try probe.ask("STATE.STATUS")["watches"] == .integer(3)
        }
        for peer in leaving { peer.socket.end() }
        leaving = []
        store.openReading()
        try server.waitUntil("nobody that follows what changes") {
            try probe.ask("STATE.STATUS")["watches"] == .integer(0)
        }
        #expect(try probe.ask("STATE.STATUS")["revision"] == .integer(3))
        writer.socket.end()
        probe.socket.end()
        #expect(try server.faultsAfterLeaving() == [])
    }

    // MARK: STATE.HISTORY

    @Test func `STATE.HISTORY tells the changes of a key, newest first`() throws {
        let peer = try server.connect(3)
        for command in ["SET k 1", "SET other 1", "SET k 2", "DEL k", "SET k \"\""] {
            _ = try peer.ask(command)
        }
        try peer.expect(
            """
            > STATE.HISTORY k
            > STATE.HISTORY k LIMIT 1
            > STATE.HISTORY none
            [{"revision": 5, "value": "", "time": …, "by": …}, \
            {"revision": 4, "value": (nil), "time": …, "by": …}, \
            {"revision": 3, "value": "2", "time": …, "by": …}, \
            {"revision": 1, "value": "1", "time": …, "by": …}]
            [{"revision": 5, "value": "", "time": …, "by": …}]
            []
            """
        )
    }

    @Test(arguments: [1, 2, 3, 7, 100])
    func `pages of STATE.HISTORY are the whole, and BEFORE any revision is what was before it`(
        limit: Int
    ) throws {
        let peer = try server.connect(3)
        for value in 1...20 {
            _ = try peer.ask(value % 3 == 0 ? "SET o \(value)" : "SET k \(value)")
        }
        let whole = try peer.ask("STATE.HISTORY k").elements ?? []
        #expect(whole.count == 14)
        var paged: [Reply] = []
        while true {
            let before = paged.last?["revision"]?.integerValue.map { "BEFORE \($0)" } ?? ""
            let page = try peer.ask("STATE.HISTORY k LIMIT \(limit) \(before)").elements ?? []
            paged += page
            if page.count < limit { break }
        }
        #expect(paged == whole)
        for revision in 0...22 as ClosedRange<Int64> {
            let before = try peer.ask("STATE.HISTORY k BEFORE \(revision)").elements ?? []
            #expect(before == whole.filter { $0["revision"]?.integerValue ?? 0 < revision })
        }
    }
}
