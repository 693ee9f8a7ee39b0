import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What Redis's tools ask of a server, and what one client does to others.
struct ClientControlTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace(HeldBacking(isHeld: false)) }

    @Test func `CLIENT KILL ends connections, the oldest form by address`() throws {
        let (peer, other, third) = (
            try server.connect(), try server.connect(), try server.connect()
        )
        let number = try #require(try other.ask("CLIENT ID").integerValue)
        #expect(try peer.ask("CLIENT KILL ID \(number)") == .integer(1))
        #expect(throws: (any Error).self) { try other.next() }
        #expect(try peer.ask("CLIENT KILL ID \(number)") == .integer(0))
        #expect(try peer.ask("CLIENT KILL nowhere:1").errorText == "ERR No such client")
        #expect(try peer.ask("CLIENT KILL USER nobody") == .integer(0))
        #expect(try peer.ask("CLIENT KILL TYPE normal") == .integer(1))
        #expect(throws: (any Error).self) { try third.next() }
        let line = try #require(try peer.ask("CLIENT INFO").textValue)
        let address = line.split(separator: " ").first { $0.hasPrefix("addr=") }?.dropFirst(5)
        #expect(try peer.ask("CLIENT KILL \(address ?? "")") == .simple("OK"))
        #expect(throws: (any Error).self) { try peer.next() }
    }

    @Test func `CLIENT REPLY OFF and SKIP suppress replies`() throws {
        let peer = try server.connect()
        try peer.send("CLIENT REPLY SKIP", "SET a 1", "GET a")
        #expect(try peer.next().textValue == "1")
        try peer.send("CLIENT REPLY OFF", "SET a 2", "NONSENSE", "CLIENT REPLY ON", "GET a")
        #expect(try peer.next() == .simple("OK"))
        #expect(try peer.next().textValue == "2")
    }

    @Test func `CLIENT REPLY is refused inside MULTI`() throws {
        let peer = try server.connect()
        for command in ["MULTI", "SET a 1", "CLIENT REPLY OFF"] { _ = try peer.ask(command) }
        let text = try #require(try peer.ask("EXEC").errorText)
        #expect(text.contains("CLIENT REPLY is not allowed inside MULTI"), "\(text)")
        #expect(try peer.ask("GET a") == .null)
    }

    @Test func `CLIENT PAUSE holds writes, or everything, until UNPAUSE`() throws {
        let (peer, admin) = (try server.connect(), try server.connect())
        #expect(try admin.ask("CLIENT PAUSE 600000 WRITE") == .simple("OK"))
        try peer.send("SET a 1")
        #expect(try admin.ask("GET a") == .null)
        #expect(try peer.arrived().isEmpty)
        #expect(try admin.ask("CLIENT UNPAUSE") == .simple("OK"))
        #expect(try peer.next() == .simple("OK"))
        #expect(try admin.ask("CLIENT PAUSE 1") == .simple("OK"))
        #expect(try peer.ask("GET a").textValue == "1")
    }

    @Test func `CLIENT UNBLOCK ends a STATE.CHANGES that waits`() throws {
        let (peer, other) = (try server.connect(3), try server.connect())
        let number = try #require(try peer.ask("CLIENT ID").integerValue)
        #expect(try other.ask("CLIENT UNBLOCK \(number)") == .integer(0))
        try peer.send("STATE.CHANGES SINCE 0 BLOCK 0 a")
        try server.waitUntil("a client that waits") {
            try other.ask("CLIENT UNBLOCK \(number) ERROR") == .integer(1)
        }
        #expect(try peer.next().errorText == "UNBLOCKED client unblocked via CLIENT UNBLOCK")
    }

    @Test func `MONITOR is sent every command of the others`() throws {
        let (monitor, peer) = (try server.connect(), try server.connect())
        #expect(try monitor.ask("MONITOR") == .simple("OK"))
        _ = try peer.ask([Array("SET".utf8), Array("a".utf8), [0x22, 0x0A, 0xFF]])
        let line = try #require(try monitor.next().textValue)
        #expect(line.hasSuffix(#" "SET" "a" "\"\n\xff""#), "\(line)")
        #expect(line.contains(" [0 "), "\(line)")
    }

    @Test func `commands are counted, and RESETSTAT begins anew`() throws {
        let peer = try server.connect()
        for _ in 0..<5 { _ = try peer.ask("GET a") }
        _ = try peer.ask("GET")
        _ = try peer.ask("SETEX a 0 1")
        let info = try #require(try peer.ask("INFO everything").textValue)
        #expect(info.contains("cmdstat_get:calls=5,"), "\(info)")
        #expect(info.contains(",rejected_calls=1,failed_calls=0"), "\(info)")
        #expect(info.contains("errorstat_ERR:count=2"), "\(info)")
        #expect(try peer.ask("CONFIG RESETSTAT") == .simple("OK"))
        let after = try #require(try peer.ask("INFO commandstats").textValue)
        #expect(!after.contains("cmdstat_get"), "\(after)")
        _ = try peer.ask("GET a")
        #expect(try peer.ask("LATENCY HISTOGRAM get")["get"]?["calls"] == .integer(1))
    }

    @Test func `COMMAND DOCS has arguments, and says what differs and what is refused`() throws {
        let peer = try server.connect(3)
        let set = try #require(try peer.ask("COMMAND DOCS set")["set"])
        #expect(set["since"]?.textValue == "1.0.0" && set["group"]?.textValue == "string")
        #expect(set["compatibility"]?.textValue?.hasPrefix("differs: ") == true)
        let arguments = try #require(set["arguments"]?.elements)
        #expect(arguments.map { $0["name"]?.textValue }.prefix(3) == ["key", "value", "nx"])
        #expect(arguments[2]["type"]?.textValue == "oneof")
        #expect(
            try peer.ask("COMMAND DOCS lpush")["lpush"]?["compatibility"]?.textValue
                == "refused: values are strings: there are no lists"
        )
        #expect(
            try peer.ask("COMMAND GETKEYS MSETEX 2 a 1 b 2 NX").elements?.map(\.textValue) == [
                "a", "b",
            ]
        )
        #expect(
            try peer.ask("COMMAND GETKEYS PING").errorText == "ERR The command has no key arguments"
        )
        #expect(try peer.ask("CLIENT HELP").elements?.count ?? 0 > 10)
        let slowlog = try #require(try peer.ask("COMMAND DOCS slowlog")["slowlog"])
        #expect(slowlog["arguments"] == nil)
        let subcommands = try #require(slowlog["subcommands"])
        let count = try #require(subcommands["slowlog|get"]?["arguments"]?.elements)
        #expect(count.map { $0["name"]?.textValue } == ["count"])
        #expect(count[0]["token"] == nil)
        #expect(subcommands["slowlog|reset"]?["summary"]?.textValue?.isEmpty == false)
        #expect(subcommands["slowlog|reset"]?["arguments"] == nil)
    }

    @Test func `replication, modules, users and waiting are answered as they are`() throws {
        let peer = try server.connect()
        try peer.expect(
            """
            > ROLE
            > WAIT 0 0
            > MODULE LIST
            > ACL CAT nonsense
            > SLOWLOG LEN
            > LATENCY LATEST
            > SELECT 0
            > SELECT 1
            ["master", 0, []]
            0
            []
            -ERR Unknown category 'nonsense'
            0
            []
            +OK
            -ERR DB index is out of range: there is one database, 0
            """
        )
        #expect(try peer.ask("ACL CAT").elements?.map(\.textValue).contains("string") == true)
        #expect(try peer.ask("LASTSAVE").integerValue ?? 0 > 1_500_000_000)
    }

    @Test func `shard channels are channels of their own`() throws {
        let (peer, other) = (try server.connect(3), try server.connect())
        try peer.send("SSUBSCRIBE ch", "SUBSCRIBE ch")
        #expect(
            try peer.next()
                == .push([.bulk(Array("ssubscribe".utf8)), .bulk(Array("ch".utf8)), .integer(1)])
        )
        _ = try peer.next()
        #expect(try other.ask("SPUBLISH ch hello") == .integer(1))
        #expect(try other.ask("PUBSUB SHARDCHANNELS").elements?.map(\.textValue) == ["ch"])
        #expect(try other.ask("PUBSUB SHARDNUMSUB ch").elements?.last == .integer(1))
        let message = try peer.next()
        #expect(message.elements?.map(\.textValue) == ["smessage", "ch", "hello"])
        try peer.send("SUNSUBSCRIBE")
        #expect(try peer.next().elements?.last == .integer(0))
    }
}
