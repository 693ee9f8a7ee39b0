import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Keys that live as long as a connection, and names of the next level.
struct LifetimeCommandTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace(HeldBacking(isHeld: false)) }

    private func isPresent(_ key: String) throws -> Bool {
        try server.connect().ask("EXISTS \(key)") == .integer(1)
    }

    @Test func `a process with keys takes a place of a client`() throws {
        let small = try ServedKeyspace { $0.clientCount = 1 }
        let peer = try small.connect()
        let text = try #require(try peer.ask("STATE.SET a v LIFETIME process").errorText)
        #expect(text.hasPrefix("LIMIT no place for process"), "\(text)")
        #expect(try peer.ask("GET a") == .null)
        #expect(try peer.ask("STATE.SET a v LIFETIME connection").errorText == nil)
    }

    @Test func `a key lives as long as the connection that set it, and others see its end`() throws
    {
        let watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH p/ BY")
        do {
            let client = try server.connect(3)
            _ = try client.ask("STATE.SET p/a 1 LIFETIME connection")
            _ = try client.ask("STATE.SET p/b 2 lifetime CONNECTION")
            _ = try client.ask("STATE.APPLY 1 SET p/c 3 LIFETIME connection")
            _ = try client.ask("STATE.SET p/stays 4")
            #expect(try client.ask("STATE.GET p/a")["lifetime"]?.textValue == "connection")
            #expect(try client.ask("STATE.GET p/a")["expires"] == .null)
            #expect(try client.ask("STATE.GET p/stays")["lifetime"] == nil)
            #expect(try client.ask("TTL p/a") == .integer(-1))
            _ = try watcher.next(4)
        }
        let end = try #require(try watcher.next().elements)
        #expect(end[3].elements?.count == 3, "one commit has all keys: \(end)")
        #expect(end[4].textValue?.hasSuffix(":0:disconnect:") == true)
        #expect(server.durable() == ["p/stays": "4"])
        #expect(try watcher.arrived() == [])
    }

    @Test func `what another sets is its own, and what it adds to is not`() throws {
        let other = try server.connect()
        do {
            let client = try server.connect()
            for key in ["set", "incr", "persist", "expire"] {
                _ = try client.ask("STATE.SET \(key) 1 LIFETIME connection")
            }
            _ = try other.ask("SET set 2")
            _ = try other.ask("INCR incr")
            #expect(try other.ask("PERSIST persist") == .integer(1))
            #expect(try other.ask("EXPIRE expire 1000") == .integer(1))
        }
        try server.waitUntil("the end of the key") { try !isPresent("incr") }
        #expect(try other.ask("EXISTS set persist expire") == .integer(3))
        #expect(try other.ask("TTL expire") == .integer(1_000))
    }

    @Test func `a client that disconnects right behind its write leaves nothing`() throws {
        for number in 0..<20 {
            let client = try server.connect()
            try client.send("STATE.SET k/\(number) v LIFETIME connection")
        }
        let log = try server.connect()
        _ = try log.ask("SET last 1")
        try server.waitUntil("the keys to end") { server.durable() == ["last": "1"] }
    }

    @Test func `a claim moves the keys to another connection of the same user`() throws {
        var claim = ""
        let heir = try server.connect(3)
        do {
            let client = try server.connect(3)
            let first = try client.ask("STATE.CLAIM")
            claim = try #require(first["claim"]?.textValue)
            #expect(claim.count == 16 && first["keys"] == .integer(0))
            #expect(first["grace"] == .integer(10))
            _ = try client.ask("STATE.SET a 1 LIFETIME connection")
            #expect(try client.ask("STATE.CLAIM \(claim)")["keys"] == .integer(1))
            #expect(try heir.ask("STATE.CLAIM \(claim)")["keys"] == .integer(1))
            _ = try client.ask("STATE.SET b 2 LIFETIME connection")
            let refusal = try client.ask("STATE.CLAIM \(claim)").errorText
            #expect(refusal?.hasPrefix("CONFLICT this connection has 1 keys") == true)
        }
        try server.waitUntil("the end of b") { try !isPresent("b") }
        #expect(try heir.ask("GET a").textValue == "1")
        let late = try server.connect(3)
        #expect(try late.ask("STATE.CLAIM 0000000500000000").errorText?.hasPrefix("ERR") != true)
        let unknown = try late.ask("STATE.CLAIM \(claim.dropLast())x").errorText
        #expect(unknown?.hasPrefix("ERR '") == true)
    }

    @Test func `what is no lifetime is refused`() throws {
        try server.connect().expect(
            """
            > STATE.SET k v LIFETIME thread
            > STATE.SET k v LIFETIME connection EXPIRES 5s
            > STATE.SET k v EXPIRES 5s LIFETIME process
            > STATE.SET k v LIFETIME
            > STATE.CLAIM 1 2
            > MULTI
            > STATE.CLAIM
            > EXEC
            > EXISTS k
            -ERR LIFETIME must be connection or process, not 'thread'
            -ERR syntax error: in option 'EXPIRES' of STATE.SET
            -ERR syntax error: in option 'LIFETIME' of STATE.SET
            -ERR syntax error: in option 'LIFETIME' of STATE.SET
            -ERR wrong number of arguments for 'state.claim' command
            +OK
            +QUEUED
            -EXECABORT Transaction undone: command 1, 'state.claim': ERR STATE.CLAIM is not allowed inside MULTI
            0
            """
        )
    }

    @Test func `the next level below a prefix has each name once`() throws {
        let peer = try server.connect()
        for key in ["a", "a/b", "a/b/c", "a/b/d/e", "a/b-c", "a/f", "a/g/h", "ab"] {
            _ = try peer.ask("SET \(key) 1")
        }
        _ = try peer.ask("SET a/i/gone 1 PX 1")
        _ = try peer.ask("DEL a/i/gone")
        try peer.expect(
            """
            > STATE.LIST a/ CHILDREN
            > STATE.LIST / CHILDREN
            > STATE.LIST a/b/ CHILDREN
            > STATE.LIST a/ CHILDREN LIMIT 2
            > STATE.LIST a/ CHILDREN AFTER a/b/
            > STATE.LIST a/ LIMIT 1 AFTER a/b-c CHILDREN
            > STATE.LIST nothing/ CHILDREN
            > STATE.LIST a CHILDREN
            > STATE.LIST a/ CHILDREN KEYS
            > STATE.LIST a/ CHILDREN AT 1
            [["a/b"], ["a/b-c"], ["a/b/"], ["a/f"], ["a/g/"]]
            [["a"], ["a/"], ["ab"]]
            [["a/b/c"], ["a/b/d/"]]
            [["a/b"], ["a/b-c"]]
            [["a/f"], ["a/g/"]]
            [["a/b/"]]
            []
            -ERR CHILDREN needs a prefix that ends in /, not 'a'
            -ERR syntax error: in option 'KEYS' of STATE.LIST
            -ERR syntax error: CHILDREN lists the present; list the keys for AT, with KEYS
            """
        )
    }

    @Test func `keys without end are skipped by name, not one by one`() throws {
        try server.keyspace.apply((0..<50_000).map { .set(try Key("wide/\($0 % 3)/\($0)"), []) })
        let peer = try server.connect()
        #expect(
            try peer.ask("STATE.LIST wide/ CHILDREN").shown
                == "[[\"wide/0/\"], [\"wide/1/\"], [\"wide/2/\"]]"
        )
    }
}
