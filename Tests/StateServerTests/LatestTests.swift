import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// STATE.WATCH … LATEST.
struct LatestTests {
    private let stored: StoredServer
    private let writer: Peer

    init() throws {
        stored = try StoredServer { $0.outputByteCount = 1 << 20 }
        writer = try stored.connect(2)
    }

    @Test func `a round is closed by synced`() throws {
        let peer = try stored.connect()
        _ = try peer.ask("STATE.WATCH a/ LATEST BY")
        _ = try writer.ask("MSET a/1 x a/2 y b z")
        let round = try peer.next(2)
        #expect(round[0].elements?[3].shown == #"[["a/1", "x"], ["a/2", "y"]]"#)
        #expect(round[0].elements?[4].textValue.flatMap { Cause($0) } != nil)
        #expect(round[1].shown == #"push["state.synced", 1, 1]"#)
        _ = try writer.ask("DEL a/1")
        #expect(try peer.next().elements?[3].shown == #"[["a/1", (nil)]]"#)
        #expect(try peer.next().shown == #"push["state.synced", 1, 2]"#)
    }

    @Test func `a connection's own change is pushed to it before its reply`() throws {
        try stored.connect().expect(
            """
            > STATE.WATCH / LATEST
            {"watch": 1, "revision": 0, "epoch": …}
            > SET a 1
            push["state.change", 1, 1, [["a", "1"]]]
            push["state.synced", 1, 1]
            +OK
            """
        )
    }

    @Test func `LATEST and PREVIOUS exclude each other`() throws {
        let error = try stored.connect().ask("STATE.WATCH / PREVIOUS LATEST").errorText
        #expect(error?.hasPrefix("ERR syntax error: STATE.WATCH takes only one of LATEST") == true)
    }

    @Test func `FROM with LATEST tells of each key that changed since what it is now`() throws {
        for command in ["SET a 1", "SET b 1", "SET c 1", "SET a 2", "DEL b", "SET d 1", "DEL d"] {
            _ = try writer.ask(command)
        }
        try stored.connect().expect(
            """
            > STATE.WATCH / FROM 3 LATEST
            {"watch": 1, "revision": 7, "epoch": …}
            push["state.change", 1, 4, [["a", "2"]]]
            push["state.change", 1, 5, [["b", (nil)]]]
            push["state.change", 1, 7, [["d", (nil)]]]
            push["state.synced", 1, 7]
            """
        )
    }

    @Test func `of 1,000 keys at most 1,000 values wait, and the last of each arrives`() throws {
        let peer = try stored.connect()
        let client = try peer.identify()
        _ = try peer.ask("STATE.WATCH / LATEST")
        let value = String(repeating: "v", count: 500)
        var most: Int64 = 0
        for step in 0..<Extent.rounds(200) {
            try writer.send(
                (0..<500).map { Peer.words("SET k/\((step * 500 + $0) % 1_000) \(step):\(value)") }
            )
            _ = try writer.next(500)
            guard step % 20 == 19, let report = try stored.report(client) else { continue }
            let values = report["values"]?.integerValue ?? 0
            let pending = report["pending"]?.integerValue ?? 0
            #expect(values <= 1_000 && pending <= 1_000)
            most = max(most, pending)
            // What is written, a round of saved values, and the pending keys.
            #expect(report["waiting"]?.integerValue ?? 0 < 2 << 20)
        }
        #expect(most == 1_000)
        let last = stored.server.keyspace.revision
        var replies: [Reply] = []
        while replies.last?.pushKind != "state.synced" || replies.last?.pushRevision != last {
            replies.append(try peer.next())
        }
        let audit = try LatestAudit(try stored.committed(), "/")
        #expect(audit.fault(in: replies) == nil)
        #expect(try stored.report(client)?["state"]?.textValue == "synced")
    }

    @Test func `A gap is never silent: a watch that owes latest values when it is ended says so`()
        throws
    {
        let peer = try stored.connect()
        _ = try peer.ask("STATE.WATCH / LATEST")
        let value = String(repeating: "v", count: 1_000)
        for first in stride(from: 0, to: 1_500, by: 500) {
            try writer.send((first..<first + 500).map { Peer.words("SET \($0) \(value)") })
            _ = try writer.next(500)
        }
        try peer.send("STATE.UNWATCH 1")
        var replies: [Reply] = []
        while replies.last != .simple("OK") { replies.append(try peer.next()) }
        #expect(replies.dropLast().last?.pushKind == "state.gap")
        // One that owes nothing has nothing to say.
        try peer.expect(
            """
            > STATE.WATCH / LATEST
            {"watch": 2, "revision": 1500, "epoch": …}
            > SET a 1
            push["state.change", 2, 1501, [["a", "1"]]]
            push["state.synced", 2, 1501]
            +OK
            > STATE.UNWATCH 2
            +OK
            """
        )
    }

    @Test func `who wrote each value counts among what waits`() throws {
        let stored = try StoredServer()
        let (peer, writer) = try (stored.connect(), stored.connect())
        let client = try peer.identify()
        _ = try peer.ask("STATE.WATCH / LATEST BY")
        let value = String(repeating: "v", count: 1_000)
        _ = try writer.ask("CLIENT SETNAME \(String(repeating: "n", count: 256))")
        for first in stride(from: 0, to: 5_000, by: 500) {
            try writer.send((first..<first + 500).map { Peer.words("SET \($0) \(value)") })
            _ = try writer.next(500)
        }
        let report = try #require(try stored.report(client))
        let pending = try #require(report["pending"]?.integerValue)
        #expect(pending > 3_000)
        #expect(report["waiting"]?.integerValue ?? 0 > pending * 350)
    }

    @Test func `each watch of a connection is told in its turn`() throws {
        let peer = try stored.connect()
        for prefix in ["a", "b", "c", "d"] { _ = try peer.ask("STATE.WATCH \(prefix)/ LATEST") }
        let value = String(repeating: "v", count: 4_000)
        var counts: [Int64: Int] = [:]
        // There is always more to tell of each than is read meanwhile.
        for _ in 0..<60 {
            for prefix in ["a", "b", "c", "d"] {
                try writer.send((0..<100).map { Peer.words("SET \(prefix)/\($0) \(value)") })
                _ = try writer.next(100)
            }
            for reply in try peer.next(40) {
                counts[reply.elements?[1].integerValue ?? 0, default: 0] += 1
            }
        }
        #expect(counts.keys.sorted() == [1, 2, 3, 4])
        #expect(counts.values.allSatisfy { $0 > 100 }, "\(counts)")
    }

    @Test func `more keys than may be pending are a gap and the state`() throws {
        let peer = try stored.connect()
        _ = try peer.ask("STATE.WATCH / LATEST")
        let value = String(repeating: "v", count: 4_000)
        for first in stride(from: 0, to: 20_000, by: 500) {
            try writer.send((first..<first + 500).map { Peer.words("SET \($0) \(value)") })
            _ = try writer.next(500)
        }
        let last = stored.server.keyspace.revision
        var replies: [Reply] = []
        while replies.last?.pushKind != "state.synced" || replies.last?.pushRevision != last {
            replies.append(try peer.next())
        }
        #expect(replies.contains { $0.pushKind == "state.gap" })
        let audit = try LatestAudit(try stored.committed(), "/")
        #expect(audit.fault(in: replies) == nil)
    }
}

/// STATE.WATCH … FROM … LATEST, whose reading of the history takes long.
struct LatestReadingTests {
    @Test func `A gap is never silent: more keys than fit while the history is read`() throws {
        let store = try GatedStore()
        let server = try ServedKeyspace(store) { $0.outputByteCount = 16 << 10 }
        let writer = try server.connect()
        for number in 0..<10 { _ = try writer.ask("SET before/\(number) 1") }
        let peer = try server.connect(3)
        store.holdReading()
        _ = try peer.ask("STATE.WATCH / FROM 1 LATEST")
        #expect(store.waitForReader())
        for number in 0..<500 { _ = try writer.ask("SET meanwhile/\(number) 1") }
        store.openReading()
        var told: Set<String> = []
        var hasGap = false
        while true {
            let parts = try peer.next().elements ?? []
            let kind = parts.first?.textValue
            if kind == "state.synced" { break }
            if kind == "state.gap" {
                hasGap = true
                told = []
            }
            for row in parts.count > 3 ? parts[3].elements ?? [] : [] {
                told.insert(row.elements?[0].textValue ?? "")
            }
        }
        #expect(hasGap)
        #expect(told == Set(server.durable().keys))
    }
}
