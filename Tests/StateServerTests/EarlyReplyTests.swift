import StateEngine
import StateRules
import StateServer
import StateTestSupport
import StateWire
import Testing

/// STATE.SET with DURABILITY: how soon its own writer is answered, and nobody else.
struct EarlyReplyTests {
    private let backing = HeldBacking()
    private let server: ServedKeyspace
    private let writer: Peer
    private let reader: Peer

    init() throws {
        server = try ServedKeyspace(backing)
        writer = try server.connect(3)
        reader = try server.connect(3)
    }

    private static func early(_ revision: Int64) -> String {
        #"{"revision": \#(revision), "durability": "memory"}"#
    }

    @Test func `a writer that asks for memory is answered at once, and nobody else is told`() throws
    {
        _ = try reader.ask("STATE.WATCH /")
        let reply = try writer.ask("STATE.SET k v DURABILITY memory")
        #expect(reply.shown == Self.early(1))
        try reader.send("GET k")
        try server.catchUp()
        #expect(try reader.arrived() == [])
        backing.release()
        #expect(
            try reader.next(2).map(\.shown) == [
                #"push["state.change", 1, 1, [["k", "v"]]]"#, #""v""#,
            ]
        )
    }

    @Test(arguments: ["synced", "SYNCED"])
    func `a writer that asks for more is answered when the commit is synced`(level: String) throws {
        try writer.send("STATE.SET k v DURABILITY \(level)")
        #expect(backing.held() != nil)
        try server.catchUp()
        #expect(try writer.arrived() == [])
        backing.release()
        #expect(try writer.next().shown == #"{"revision": 1, "durability": "synced"}"#)
    }

    @Test(arguments: ["STATE.GET late/k AT 2", "STATE.LIST late/ AT 2", "STATE.REVERT late/ TO 2"])
    func `what looks back waits for a change that was acknowledged before storage`(
        command: String
    ) throws {
        let rule = #"{"keys": "late/", "durability": "interval", "commitEvery": "1h"}"#
        try server.exchangeRules(AccessStage.table(rule).byKey)
        try writer.send("SET k 1")
        #expect(backing.held() != nil)
        let late = try server.connect(3)
        let acknowledged = try late.ask("STATE.SET late/k v").shown
        #expect(acknowledged == #"{"revision": 2, "durability": "interval"}"#)
        try reader.send(command)
        try server.catchUp()
        #expect(try reader.arrived() == [])
        backing.release()
        #expect(try reader.next().errorText == nil)
    }

    @Test func `an early reply stands behind the replies before it`() throws {
        try writer.send("SET a 1", "STATE.SET k v DURABILITY memory", "PING")
        #expect(backing.held() != nil)
        try server.catchUp()
        #expect(try writer.arrived() == [])
        backing.open()
        #expect(try writer.next(3).map(\.shown) == ["+OK", Self.early(2), "+PONG"])
    }

    @Test func `a condition waits for what others wrote, not for the writer's own`() throws {
        #expect(try writer.ask("STATE.SET k 1 DURABILITY memory").shown == Self.early(1))
        let own = try writer.ask("STATE.SET k 2 IFREV 1 DURABILITY memory")
        #expect(own.shown == Self.early(2))
        let other = try server.connect(3)
        _ = try other.ask("CLIENT SETNAME other")
        try other.send("STATE.SET k 3 IFREV 2 DURABILITY memory", "STATE.SET k 4 IFREV 1")
        try server.catchUp()
        #expect(try other.arrived() == [])
        backing.open()
        #expect(
            try other.next(2).map(\.shown) == [
                Self.early(3), "-CONFLICT key 'k' is at revision 3",
            ]
        )
    }

    @Test func `a commit that fails after its reply is undone, logged and counted`() throws {
        #expect(try writer.ask("STATE.SET k 1 DURABILITY memory").shown == Self.early(1))
        // These replies have not gone, and so are what the failure makes of them.
        try writer.send("SET a 1", "STATE.SET k 2 DURABILITY memory")
        #expect(backing.held() != nil)
        try server.catchUp()
        backing.fail(StateError(.noSpace, "the disk is full"))
        let error = "-NOSPACE the disk is full"
        #expect(try writer.next(2).map(\.shown) == [error, error])
        #expect(try writer.ask("GET k") == .null)
        #expect(try writer.ask("STATE.STATUS")["undone_after_reply"] == .integer(1))
        #expect(
            server.log.current.contains {
                $0.contains("1 commit was undone although its writer had a reply")
            }
        )
        backing.open()
        _ = try writer.ask("STATE.SET k 3 DURABILITY memory")
        #expect(try writer.ask("GET k").shown == #""3""#)
        #expect(try writer.ask("STATE.STATUS")["undone_after_reply"] == .integer(1))
    }

    @Test func `in a transaction the reply waits for storage`() throws {
        try writer.send("MULTI", "STATE.SET k v DURABILITY memory", "EXEC")
        #expect(backing.held() != nil)
        try server.catchUp()
        #expect(try writer.arrived().count == 2)
        backing.open()
        #expect(try writer.next().shown == #"[{"revision": 1, "durability": "synced"}]"#)
    }

    @Test(arguments: [
        ("DURABILITY", "ERR syntax error: in option 'DURABILITY' of STATE.SET"),
        ("DURABILITY disk", "ERR DURABILITY must be memory, interval or synced, not 'disk'"),
        (
            "DURABILITY memory DURABILITY synced",
            "ERR syntax error: in option 'DURABILITY' of STATE.SET"
        ),
    ])
    func `a level that is none is refused`(options: String, error: String) throws {
        #expect(try writer.ask("STATE.SET k v \(options)").errorText == error)
    }
}
