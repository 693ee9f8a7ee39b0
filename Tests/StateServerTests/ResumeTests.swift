import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// STATE.WATCH … FROM, and watches that have fallen behind.
struct ResumeTests {
    private let stored: StoredServer
    private let writer: Peer

    /// No bookmark becomes due by time.
    init() throws {
        stored = try StoredServer { $0.progressMilliseconds = 3_600_000 }
        writer = try stored.connect(2)
    }

    /// Writes of every kind, and what a watch of everything is told of them as they happen.
    private func live(_ options: String) throws -> [Reply] {
        let peer = try stored.connect()
        _ = try peer.ask("STATE.WATCH / \(options)")
        for command in [
            "SET a/1 x", "MSET a/1 y b z a/2 w", "DEL b", "DEL a/1 a/2", "SET b \"\"",
            "APPEND a/1 q",
            "GETDEL b", "INCR n", "INCR n", "SET a/1 last",
        ] { _ = try writer.ask(command) }
        return try peer.next(10)
    }

    @Test(arguments: ["", "PREVIOUS", "BY", "PREVIOUS BY"])
    func `resumable: FROM r tells exactly what a watch was told live after r`(
        options: String
    ) throws {
        let told = try live(options)
        #expect(told.map(\.pushRevision) == Array(1...10))
        for revision in 0..<10 {
            let peer = try stored.connect()
            let reply = try peer.ask(
                "STATE.WATCH / FROM \(revision) EPOCH \(stored.epoch) \(options)"
            )
            #expect(reply["revision"] == .integer(10))
            #expect(try peer.next(10 - revision) == Array(told[revision...]))
            #expect(try peer.ask("PING") == .simple("PONG"))
        }
    }

    @Test func `a watch is resumed for what its patterns mean`() throws {
        _ = try live("")
        let peer = try stored.connect()
        _ = try peer.ask("STATE.WATCH b n FROM 2")
        #expect(try peer.next(5).map(\.pushRevision) == [3, 5, 7, 8, 9])
        #expect(try peer.next().shown == #"push["state.progress", 1, 10]"#)
        _ = try writer.ask("SET b 1")
        #expect(try peer.next().shown == #"push["state.change", 1, 11, [["b", "1"]]]"#)
    }

    @Test(arguments: ["", "LATEST"])
    func `a watch that nothing was missed of is told so as soon as that is known`(
        option: String
    ) throws {
        for key in ["a", "b", "c"] { _ = try writer.ask("SET \(key) 1") }
        let peer = try stored.connect()
        _ = try peer.ask("STATE.WATCH a FROM 1 \(option)")
        let mark = option.isEmpty ? "state.progress" : "state.synced"
        #expect(try peer.next().shown == #"push["\#(mark)", 1, 3]"#)
        try stored.server.catchUp()
        #expect(try peer.arrived() == [])
    }

    @Test
    func `bookmarkable: a watch that has caught up is told so at once, whatever others wrote`()
        throws
    {
        let stored = try StoredServer { $0.progressMilliseconds = .max / 2 }
        let writer = try stored.connect(2)
        for key in ["a/1", "b/1", "b/2"] { _ = try writer.ask("SET \(key) 1") }
        let (some, none) = try (stored.connect(), stored.connect())
        _ = try some.ask("STATE.WATCH a/ FROM 0")
        #expect(try some.next().shown == #"push["state.change", 1, 1, [["a/1", "1"]]]"#)
        #expect(try some.next().shown == #"push["state.progress", 1, 3]"#)
        _ = try none.ask("STATE.WATCH c/ FROM 1")
        #expect(try none.next().shown == #"push["state.progress", 1, 3]"#)
        // Where the last commit was its own, that says it.
        let all = try stored.connect()
        _ = try all.ask("STATE.WATCH b/ FROM 1")
        #expect(try all.next(2).map(\.pushRevision) == [2, 3])
        #expect(try all.ask("PING") == .simple("PONG"))
    }

    @Test func `FROM the present is synced at once`() throws {
        _ = try writer.ask("SET a 1")
        let peer = try stored.connect()
        _ = try peer.ask("STATE.WATCH / FROM 1 EPOCH \(stored.epoch)")
        let client = try peer.identify()
        #expect(try stored.report(client)?["state"]?.textValue == "synced")
        _ = try writer.ask("SET a 2")
        #expect(try peer.next().shown == #"push["state.change", 1, 2, [["a", "2"]]]"#)
    }

    @Test(arguments: [
        "FROM 3", "FROM 2 EPOCH 1", "FROM 1 EPOCH 00000000000000ff", "FROM 1 EPOCH nonsense",
        "FROM 9007199254740991",
    ])
    func `a gap is never silent: what cannot be resumed gets one, the state, and is live`(
        option: String
    ) throws {
        _ = try writer.ask("SET a 1")
        _ = try writer.ask("SET b 1")
        try expectGapAndState(try stored.connect(), option)
    }

    @Test func `where nothing is kept of what was, FROM the past is a gap`() throws {
        let server = try ServedKeyspace()
        let writer = try server.connect()
        _ = try writer.ask("SET a 1")
        _ = try writer.ask("SET b 1")
        try expectGapAndState(try server.connect(3), "FROM 1")
        let peer = try server.connect(3)
        _ = try peer.ask("STATE.WATCH / FROM 2")
        _ = try writer.ask("SET a 2")
        #expect(try peer.next().pushRevision == 3)
    }

    private func expectGapAndState(
        _ peer: Peer,
        _ option: String,
        beforeWrite: () -> Void = {}
    ) throws {
        try peer.expect(
            """
            > STATE.WATCH / \(option)
            {"watch": 1, "revision": 2, "epoch": …}
            push["state.gap", 1, 2]
            push["state.change", 1, 0, [["a", "1", 1], ["b", "1", 2]]]
            push["state.synced", 1, 2]
            """
        )
        beforeWrite()
        try peer.expect(
            """
            > SET b 2
            push["state.change", 1, 3, [["b", "2"]]]
            +OK
            """
        )
    }

    @Test func `a history that cannot be read is a gap, and is logged`() throws {
        _ = try writer.ask("SET a 1")
        _ = try writer.ask("SET b 1")
        stored.files.fail(.other, isLasting: true)
        try expectGapAndState(try stored.connect(), "FROM 1") { stored.files.heal() }
        #expect(stored.server.log.update { $0.contains { $0.contains("watch 1 of client") } })
    }

    @Test(arguments: ["", "PREVIOUS"])
    func `atomic: a commit larger than a look at the history is told whole`(options: String) throws
    {
        let peer = try stored.connect()
        _ = try peer.ask("STATE.WATCH / \(options)")
        for round in 0..<3 {
            let value = String(repeating: "\(round)", count: 200)
            let pairs = (0..<3_000).map { "k/\($0) \(value)" }.joined(separator: " ")
            try writer.send("MSET \(pairs)", "SET small \(round)")
            _ = try writer.next(2)
        }
        let told = try peer.next(6)
        let late = try stored.connect()
        _ = try late.ask("STATE.WATCH / FROM 0 \(options)")
        #expect(try late.next(6) == told)
    }

    @Test func `a watch joins the present while others write without a pause`() throws {
        for number in 0..<5_000 { try writer.send("SET a \(number)") }
        _ = try writer.next(5_000)
        let peer = try stored.connect()
        let client = try peer.identify()
        try peer.send("STATE.WATCH / FROM 0")
        var told: [Reply] = []
        var number = 5_000
        try stored.server.waitUntil("the watch is synced under way") {
            try writer.send((0..<50).map { Peer.words("SET a \(number + $0)") })
            number += 50
            let report = try stored.report(client)
            told += try peer.arrived()
            _ = try writer.next(50)
            return report?["state"]?.textValue == "synced"
        }
        while told.count < number + 1 { told.append(try peer.next()) }
        #expect(told.dropFirst().map(\.pushRevision) == (1...number).map { Int64($0) })
    }

    @Test func `UNWATCH of a watch that is catching up tells of a gap`() throws {
        for number in 0..<50_000 { try writer.send("SET a/\(number % 100) \(number)") }
        _ = try writer.next(50_000)
        let peer = try stored.connect()
        try peer.send("STATE.WATCH / FROM 0", "STATE.UNWATCH 1", "PING")
        var replies: [Reply] = []
        while replies.last != .simple("PONG") { replies.append(try peer.next()) }
        #expect(replies.suffix(3).map { $0.pushKind ?? $0.shown } == ["state.gap", "+OK", "+PONG"])
    }

    @Test func `clients that go while their watches catch up leave nothing behind`() throws {
        for number in 0..<20_000 { try writer.send("SET a/\(number % 100) \(number)") }
        _ = try writer.next(20_000)
        for _ in 0..<20 {
            let peer = try stored.connect()
            try peer.send("STATE.WATCH / FROM 0", "STATE.WATCH a/1 FROM 5 LATEST")
            _ = try peer.next()
        }
        writer.socket.end()
        #expect(try stored.server.faultsAfterLeaving() == [])
        #expect(stored.server.keyspace.withCore { $0.hub.count } == 0)
    }
}

/// Bookmarks.
struct ProgressTests {
    private let stored: StoredServer

    init() throws { stored = try StoredServer { $0.progressMilliseconds = 1 } }

    @Test func `bookmarkable: a watch is told how far it is, though nothing of it changes`() throws
    {
        let (writer, peer) = try (stored.connect(2), stored.connect())
        _ = try peer.ask("STATE.WATCH a")
        for revision in 1...20 {
            _ = try writer.ask("SET b \(revision)")
            var push = try peer.next()
            // The loop may have been slow: then more than one commit lies between two bookmarks.
            while push.pushRevision < revision { push = try peer.next() }
            #expect(
                push
                    == .push([
                        .bulk(Array("state.progress".utf8)), .integer(1), .integer(Int64(revision)),
                    ])
            )
        }
    }

    @Test func `a bookmark never repeats what was told, and none comes where nothing moves`() throws
    {
        let (writer, peer) = try (stored.connect(2), stored.connect())
        _ = try peer.ask("STATE.WATCH a SNAPSHOT")
        for number in 0..<500 { try writer.send("SET \(number % 3 == 0 ? "a" : "b") \(number)") }
        _ = try writer.next(500)
        var told: [Reply] = []
        while told.last?.pushRevision != 500 { told.append(try peer.next()) }
        let revisions = told.map(\.pushRevision)
        #expect(zip(revisions, revisions.dropFirst()).allSatisfy { $0 < $1 })
        #expect(told.last?.pushKind == "state.progress")
        try stored.server.catchUp()
        #expect(try peer.arrived() == [])
    }

    @Test func `latest values have an empty round for a bookmark`() throws {
        let (writer, peer) = try (stored.connect(2), stored.connect())
        _ = try peer.ask("STATE.WATCH a LATEST")
        _ = try writer.ask("SET b 1")
        #expect(try peer.next().shown == #"push["state.synced", 1, 1]"#)
    }
}
