import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Named handlers, as a client that runs one meets them.
struct HandlerTests {
    private let backing = HeldBacking(isHeld: false)
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace(backing) { $0.handlerCount = 3 } }

    /// Everything of a handler that does not vary.
    private func listed(_ peer: Peer, _ name: String) throws -> [String: Reply] {
        let rows = try peer.ask("STATE.HANDLERS").elements ?? []
        let row = rows.first { $0["name"]?.textValue == name }
        var fields: [String: Reply] = [:]
        for pair in row?.pairs ?? [] { fields[pair.key.textValue ?? ""] = pair.value }
        return fields
    }

    @Test func `a handler begins at the present and goes on where it was done`() throws {
        let peer = try server.connect(3)
        try peer.expect(
            """
            > SET a/k 1
            > STATE.HANDLER ATTACH h a/ b
            > SET a/k 2
            > STATE.HANDLER DONE h 3
            > STATE.HANDLER DONE h 3
            > RESET
            +OK
            {"position": 1, "epoch": …, "new": 1, "revision": 1, "current_epoch": "\(backing.epoch)"}
            +OK
            +OK
            +OK
            +RESET
            """
        )
        let again = try server.connect(3)
        let attached = try again.ask("STATE.HANDLER ATTACH h b a/ a/")
        #expect(attached["position"] == .integer(3))
        #expect(attached["new"] == .integer(0))
        #expect(attached["epoch"]?.textValue == backing.epoch.description)
        let row = try listed(again, "h")
        #expect(row["patterns"] == .array([.bulk(Array("a/".utf8)), .bulk(Array("b".utf8))]))
        #expect(row["uid"] == .integer(Int64(geteuid())))
        #expect(row["pid"] == .integer(Int64(getpid())))
        // Only its own DONE came after the last change.
        #expect(row["lag"] == .integer(0))
        #expect(try #require(row["time"]?.integerValue) > 1_700_000_000_000)
    }

    @Test func `a position is no change: no key, no event, no history`() throws {
        let (watcher, peer) = try (server.connect(3), server.connect(3))
        _ = try watcher.ask("STATE.WATCH /")
        _ = try peer.ask("STATE.HANDLER ATTACH h /")
        #expect(try peer.ask("STATE.HANDLER DONE h 1") == .simple("OK"))
        #expect(try peer.ask("DBSIZE") == .integer(0))
        #expect(backing.kept.isEmpty)
        _ = try peer.ask("SET k 1")
        #expect(try watcher.next().shown == #"push["state.change", 1, 3, [["k", "1"]]]"#)
    }

    @Test func `a name has one live connection, and one that has left gives it up`() throws {
        var first: Peer? = try server.connect(3)
        let second = try server.connect(3)
        _ = try first?.ask("STATE.HANDLER ATTACH h a/")
        #expect(
            try second.ask("STATE.HANDLER ATTACH h a/").errorText
                == "CONFLICT handler 'h' is attached to process \(getpid())"
        )
        #expect(
            try second.ask("STATE.HANDLER DONE h 1").errorText?.hasPrefix(
                "CONFLICT handler 'h' is not attached to this connection"
            ) == true
        )
        #expect(
            try second.ask("STATE.HANDLER FORGET h").errorText?.hasPrefix("CONFLICT") == true
        )
        // The same connection may ask once more.
        #expect(try first?.ask("STATE.HANDLER ATTACH h a/")["new"] == .integer(0))
        first = nil
        #expect(try second.ask("STATE.HANDLER ATTACH h a/")["new"] == .integer(0))
        #expect(try listed(second, "h")["pid"] == .integer(Int64(getpid())))
    }

    @Test func `a connection that waits for its last reply gives the name up when it leaves`()
        throws
    {
        var first: Peer? = try server.connect(3)
        let second = try server.connect(3)
        _ = try first?.ask("STATE.HANDLER ATTACH h a/")
        backing.hold()
        try first?.send("SET k 1")
        #expect(backing.held() != nil)
        first = nil
        #expect(try second.ask("STATE.HANDLER ATTACH h a/")["new"] == .integer(0))
    }

    /// A child of it that was about to run a command has its socket until then.
    @Test func `a process that has ended gives its names up, though its socket is open`() throws {
        let ended = try Peer(ByteSocket.ofEndedProcess(connectedTo: server.socketPath))
        _ = try ended.ask("HELLO 3")
        _ = try ended.ask("STATE.HANDLER ATTACH h a/")
        let peer = try server.connect(3)
        #expect(try peer.ask("STATE.HANDLER ATTACH h a/")["new"] == .integer(0))
        let refused = try ended.ask("STATE.HANDLER DONE h 1").errorText
        #expect(refused?.contains("is not attached to this connection") == true)
    }

    @Test func `other patterns are refused, and RESET begins anew with them`() throws {
        let peer = try server.connect(3)
        _ = try peer.ask("MSET a/1 1 a/2 2")
        _ = try peer.ask("STATE.HANDLER ATTACH h FROM 0 a/")
        let refused = try peer.ask("STATE.HANDLER ATTACH h b/").errorText
        #expect(refused?.hasPrefix("CONFLICT handler 'h' has the patterns 'a/'") == true)
        // FROM says where it begins the first time, and it has begun.
        #expect(try peer.ask("STATE.HANDLER ATTACH h FROM 1 a/")["position"] == .integer(0))
        let reset = try peer.ask("STATE.HANDLER ATTACH h RESET SNAPSHOT b/")
        #expect(reset["position"] == .null)
        #expect(reset["new"] == .integer(1))
        #expect(try listed(peer, "h")["lag"] == .null)
    }

    @Test(arguments: [
        ("STATE.HANDLER DONE h 9", "ERR revision 9 is above the current one, 3"),
        (
            "STATE.HANDLER DONE h 1",
            "CONFLICT handler 'h' is at revision 2 and cannot go back to 1"
        ),
        ("STATE.HANDLER ATTACH new FROM 9 a/", "ERR revision 9 is above the current one, 3"),
        ("STATE.HANDLER ATTACH h", "ERR syntax error: STATE.HANDLER ATTACH needs a pattern"),
        ("STATE.HANDLER SHOW h", "ERR syntax error: STATE.HANDLER takes"),
        ("STATE.HANDLER ATTACH \"\" a/", "ERR handler name '' has 0 bytes; it must have 1 to 128"),
        ("STATE.HANDLER ATTACH new a//", "ERR"),
        ("STATE.HANDLER DONE other 1", "CONFLICT handler 'other' is not attached"),
    ]) func `what makes no sense is refused and changes nothing`(
        command: String,
        error: String
    ) throws {
        let peer = try server.connect(3)
        _ = try peer.ask("SET a/k 1")
        _ = try peer.ask("STATE.HANDLER ATTACH h a/")
        _ = try peer.ask("STATE.HANDLER DONE h 2")
        let before = backing.metadata
        let answer = try peer.ask(command).errorText
        #expect(answer?.hasPrefix(error) == true, "\(answer ?? "no error")")
        #expect(backing.metadata == before)
    }

    @Test func `everything has a bound, and what is forgotten makes room`() throws {
        let peer = try server.connect(3)
        for name in ["a", "b", "c"] { _ = try peer.ask("STATE.HANDLER ATTACH \(name) k") }
        let refused = try peer.ask("STATE.HANDLER ATTACH d k").errorText
        #expect(refused?.hasPrefix("LIMIT uid \(geteuid()) has 3 handlers") == true)
        let long = String(repeating: "n", count: 129)
        #expect(try peer.ask("STATE.HANDLER ATTACH \(long) k").errorText?.contains("129") == true)
        let patterns = (0..<5).map { _ in String(repeating: "p", count: 1_000) }
        let many = "STATE.HANDLER ATTACH a RESET \(patterns.joined(separator: " "))"
        #expect(try peer.ask(many).errorText?.hasPrefix("LIMIT") == true)
        #expect(try peer.ask("RESET") == .simple("RESET"))
        #expect(try peer.ask("STATE.HANDLER FORGET b") == .integer(1))
        #expect(try peer.ask("STATE.HANDLER FORGET b") == .integer(0))
        _ = try peer.ask("HELLO 3")
        #expect(try peer.ask("STATE.HANDLER ATTACH d k")["new"] == .integer(1))
        #expect(try peer.ask("STATE.HANDLERS").elements?.count == 3)
    }

    @Test func `DONE is durable before OK, and a failed commit undoes it`() throws {
        let (peer, other) = try (server.connect(3), server.connect(3))
        _ = try peer.ask("SET a/k 1")
        _ = try peer.ask("STATE.HANDLER ATTACH h FROM 0 a/")
        backing.hold()
        try peer.send("STATE.HANDLER DONE h 1", "GET a/k")
        #expect(backing.held()?.isEmpty == true)
        // Nobody is told of what may still fail.
        try other.send("STATE.HANDLERS")
        try server.catchUp()
        #expect(try other.arrived() == [])
        #expect(try peer.arrived() == [])
        backing.fail(StateError(.noSpace, "the disk is full"))
        backing.open()
        #expect(
            try peer.next(2).map(\.shown) == ["-NOSPACE the disk is full", "\"1\""]
        )
        #expect(try other.next().errorText == "NOSPACE the disk is full")
        #expect(try listed(other, "h")["position"] == .integer(0))
        #expect(try peer.ask("STATE.HANDLER DONE h 1") == .simple("OK"))
        #expect(try listed(other, "h")["position"] == .integer(1))
        try server.catchUp()
        for leaving in [peer, other] { _ = try leaving.ask("QUIT") }
        #expect(try server.faultsAfterLeaving() == [])
    }

    @Test func `a commit that storage has after all is adopted with its notes`() throws {
        let peer = try server.connect(3)
        _ = try peer.ask("SET a/k 1")
        _ = try peer.ask("STATE.HANDLER ATTACH h FROM 0 a/")
        backing.hold()
        try peer.send("STATE.HANDLER DONE h 1")
        #expect(backing.held() != nil)
        backing.fail(StateError(.readOnly, "outcome unknown: the sync failed"), isKept: true)
        #expect(try peer.next().errorText?.hasPrefix("READONLY outcome unknown") == true)
        backing.open()
        try server.waitUntil("the store is open") {
            try listed(peer, "h")["position"] == .integer(1)
        }
        // Told again, as one does who had no answer.
        #expect(try peer.ask("STATE.HANDLER DONE h 1") == .simple("OK"))
    }

    @Test func `a transaction takes none of it`() throws {
        try server.connect(3).expect(
            """
            > MULTI
            > STATE.HANDLER ATTACH h a/
            > EXEC
            +OK
            -ERR 'state.handler' is not allowed in a transaction
            -EXECABORT Transaction discarded because of previous errors.
            """
        )
    }

    @Test func `RESP2 has the same as flat arrays`() throws {
        let peer = try server.connect()
        #expect(try peer.ask("STATE.HANDLER ATTACH h a/")["position"] == .integer(0))
        #expect(try peer.ask("STATE.HANDLERS").elements?.first?["position"] == .integer(0))
    }

    @Test func `a store in memory keeps positions as long as itself`() throws {
        let server = try ServedKeyspace(MemoryBacking())
        let peer = try server.connect(3)
        _ = try peer.ask("SET a/k 1")
        _ = try peer.ask("STATE.HANDLER ATTACH h FROM 0 a/")
        #expect(try peer.ask("STATE.HANDLER DONE h 1") == .simple("OK"))
        _ = try peer.ask("RESET")
        _ = try peer.ask("HELLO 3")
        #expect(try peer.ask("STATE.HANDLER ATTACH h a/")["position"] == .integer(1))
    }
}
