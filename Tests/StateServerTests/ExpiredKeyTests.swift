import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Keys whose time has come: who is notified, what INFO counts, STATE.SET with EXPIRES; the clock is the test's.
struct ExpiredKeyTests {
    private let server: ServedKeyspace
    private let clock = Observed<Int64>(1_000_000)

    init() throws {
        server = try ServedKeyspace(HeldBacking(isHeld: false))
        server.keyspace.withCore { [clock] in $0.entries.clock = { clock.current } }
    }

    private func advance(by milliseconds: Int64) { clock.update { $0 += milliseconds } }

    @Test func `a key is gone when its time has come, and not before`() throws {
        let peer = try server.connect()
        _ = try peer.ask("SET k v PX 100")
        _ = try peer.ask("SET other v")
        advance(by: 99)
        #expect(try peer.ask("GET k").textValue == "v" && peer.ask("PTTL k") == .integer(1))
        advance(by: 1)
        try peer.expect(
            """
            > GET k
            > TTL k
            > EXISTS k other
            > EXPIRE k 5
            > GETEX k
            > SET k w XX
            > SET k w NX
            > TTL k
            (nil)
            -2
            1
            0
            (nil)
            (nil)
            +OK
            -1
            """
        )
    }

    @Test func `INFO counts keys that expire and keys that have expired`() throws {
        let peer = try server.connect()
        _ = try peer.ask("MSET a 1 b 1 c 1")
        _ = try peer.ask("PEXPIRE a 1000")
        _ = try peer.ask("PEXPIRE b 3000")
        let before = try #require(try peer.ask("INFO").textValue)
        #expect(before.contains("db0:keys=3,expires=2,avg_ttl=2000"), "\(before)")
        #expect(before.contains("\r\nexpired_keys:0\r\n"))
        advance(by: 1_000)
        try server.waitUntil("its delete") { server.durable()["a"] == nil }
        let after = try #require(try peer.ask("INFO").textValue)
        #expect(after.contains("db0:keys=2,expires=1,avg_ttl=2000"), "\(after)")
        #expect(after.contains("\r\nexpired_keys:1\r\n"))
    }

    @Test func `notifications tell expired, expire and persist`() throws {
        let listener = try server.connect()
        _ = try listener.ask("PSUBSCRIBE __keyevent@0__:*")
        let peer = try server.connect()
        for command in [
            "SET k v EX 10", "EXPIRE k 20", "PERSIST k", "PEXPIRE k 30", "DEL k", "MULTI",
            "SET m 1", "EXPIRE m 5", "EXEC",
        ] {
            _ = try peer.ask(command)
        }
        advance(by: 5_000)
        try server.waitUntil("its delete") { server.durable()["m"] == nil }
        let notices = try listener.next(8).map { reply in
            (reply.elements ?? []).compactMap(\.textValue).suffix(2).joined(separator: " ")
        }
        #expect(
            notices == [
                "__keyevent@0__:set k", "__keyevent@0__:expire k", "__keyevent@0__:expire k",
                "__keyevent@0__:persist k",
                "__keyevent@0__:expire k", "__keyevent@0__:del k", "__keyevent@0__:set m",
                "__keyevent@0__:expired m",
            ]
        )
    }

    @Test func `a subscription to expired keys alone is told`() throws {
        let listener = try server.connect()
        _ = try listener.ask("SUBSCRIBE __keyevent@0__:expired")
        let peer = try server.connect()
        _ = try peer.ask("SET k v PX 10")
        advance(by: 10)
        try server.waitUntil("its delete") { server.durable()["k"] == nil }
        let notice = try listener.next(1)[0]
        #expect(
            notice.elements?.compactMap(\.textValue)
                == ["message", "__keyevent@0__:expired", "k"]
        )
    }

    @Test func `STATE.SET and STATE.APPLY take EXPIRES`() throws {
        let peer = try server.connect(3)
        try peer.expect(
            """
            > STATE.SET k a EXPIRES 30s
            > PTTL k
            > STATE.SET k b EXPIRES keep IFREV 1
            > PTTL k
            > STATE.SET k c expires 1500
            > PTTL k
            > STATE.SET k d EXPIRES never
            > PTTL k
            > STATE.APPLY 2 SET a 1 EXPIRES 1m SET b 1 IFREV 0 EXPIRES 2m
            > PTTL a
            > PTTL b
            > EXPIRE k 9
            {"revision": 1, "durability": "synced"}
            30000
            {"revision": 2, "durability": "synced"}
            30000
            {"revision": 3, "durability": "synced"}
            1500
            {"revision": 4, "durability": "synced"}
            -1
            {"revision": 5, "count": 2}
            60000
            120000
            1
            """
        )
        // A change of the time alone is a commit like any other.
        let entry = try peer.ask("STATE.GET k")
        #expect(entry["revision"] == .integer(6) && entry["version"] == .integer(5))
        #expect(entry["value"]?.textValue == "d" && entry["expires"]?.integerValue != nil)
    }
}
