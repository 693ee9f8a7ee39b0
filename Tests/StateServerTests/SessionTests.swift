import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What clients say before they come to the point (PEERS.md), and what they need to hear.
struct SessionTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace() }

    @Test func `HELLO chooses the protocol and says who answers`() throws {
        let resp2 = """
            ["server", "redis", "version", "7.0.15", "proto", 2, "id", 1, "mode", "standalone", \
            "role", "master", "modules", []]
            """
        let resp3 = """
            {"server": "redis", "version": "7.0.15", "proto": 3, "id": …, "mode": "standalone", \
            "role": "master", "modules": []}
            """
        try server.connect().expect(
            """
            > HELLO
            > HELLO 2
            > HELLO 3
            > GET missing
            > HELLO
            > HELLO 4
            > HELLO x
            > HELLO 3 FOO
            > HELLO 3 SETNAME a
            > CLIENT GETNAME
            > HELLO 2
            \(resp2)
            \(resp2)
            \(resp3)
            (nil)
            \(resp3)
            -NOPROTO unsupported protocol version
            -ERR Protocol version is not an integer or out of range
            -ERR syntax error: in HELLO option 'FOO'
            \(resp3)
            "a"
            \(resp2)
            """
        )
    }

    @Test func `the map of HELLO 3 has bulk strings for keys, byte for byte`() throws {
        let peer = try server.connect()
        try peer.socket.send("HELLO 3\r\n")
        let map = """
            %7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n\
            $2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n\
            $7\r\nmodules\r\n*0\r\n
            """
        var received: [UInt8] = []
        while received.count < map.utf8.count { received += try peer.socket.receive() ?? [] }
        #expect(String(decoding: received, as: UTF8.self) == map)
    }

    @Test func `AUTH answers as Redis does where no password is set`() throws {
        let noPassword =
            "-ERR AUTH <password> called without any password configured for the default user. "
            + "Are you sure your configuration is correct?"
        let wrong = "-WRONGPASS invalid username-password pair or user is disabled."
        try server.connect().expect(
            """
            > AUTH secret
            > AUTH default secret
            > AUTH somebody secret
            > AUTH a b c
            > HELLO 3 AUTH somebody secret SETNAME x
            > CLIENT GETNAME
            > HELLO 3 AUTH default secret SETNAME y
            > CLIENT GETNAME
            \(noPassword)
            +OK
            \(wrong)
            -ERR syntax error
            \(wrong)
            (nil)
            {"server": "redis", "version": "7.0.15", "proto": 3, "id": …, "mode": "standalone", \
            "role": "master", "modules": []}
            "y"
            """
        )
    }

    @Test(arguments: [2, 3])
    func `small talk`(version: Int) throws {
        try server.connect(version).expect(
            """
            > PING
            > PING hello
            > ECHO hello
            > SELECT 0
            > SELECT 1
            > CLIENT GETNAME
            > CLIENT SETNAME mixer
            > CLIENT GETNAME
            > CLIENT SETNAME "a b"
            > CLIENT SETINFO LIB-NAME redis-py
            > CLIENT SETINFO lib-ver 8.0
            > CLIENT SETINFO LIB x
            > CLIENT MAINT_NOTIFICATIONS on
            > CONFIG GET save
            > RESET
            > CLIENT GETNAME
            > QUIT
            > PING
            +PONG
            "hello"
            "hello"
            +OK
            -ERR DB index is out of range: there is one database, 0
            (nil)
            +OK
            "mixer"
            -ERR Client names cannot contain spaces, newlines or special characters, nor more than \
            256 bytes.
            +OK
            +OK
            -ERR Unrecognized option 'LIB'
            -ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT with SETNAME, GETNAME, \
            SETINFO, ID, INFO, LIST, KILL, REPLY, NO-EVICT, NO-TOUCH, PAUSE, UNPAUSE, UNBLOCK, \
            TRACKING, CACHING, GETREDIR or TRACKINGINFO
            \(version == 2 ? #"["save", ""]"# : #"{"save": ""}"#)
            +RESET
            (nil)
            +OK
            (end)
            """
        )
    }

    @Test func `CLIENT ID, INFO and LIST tell the connections apart`() throws {
        let (first, second) = try (server.connect(), server.connect(3))
        _ = try second.ask("CLIENT SETNAME watcher")
        _ = try second.ask("STATE.WATCH /")
        #expect(try first.ask("CLIENT ID") == .integer(1))
        #expect(try second.ask("CLIENT ID") == .integer(2))
        let line = try #require(try second.ask("CLIENT INFO").textValue)
        #expect(line.hasPrefix("id=2 addr="))
        for field in [
            ":\(getpid()) laddr=", " name=watcher ", " idle=0 flags=U db=0 ", " cmd=client ",
            " user=\(geteuid()) ", " resp=3 lib-name= lib-ver=\n",
        ] { #expect(line.contains(field), "\(line)") }
        _ = try second.ask("CLIENT SETINFO LIB-NAME redis-py")
        _ = try second.ask("CLIENT SETINFO LIB-VER 5.0.1")
        let library = try second.ask("CLIENT INFO").textValue
        #expect(library?.hasSuffix(" lib-name=redis-py lib-ver=5.0.1\n") == true)
        let list = try #require(try first.ask("CLIENT LIST").textValue)
        #expect(
            list.split(separator: "\n").map { $0.prefix { $0 != " " } } == ["id=1", "id=2"]
        )
    }

    @Test func `CLIENT LIST has the fields of Redis, and no others, because go-redis refuses them`()
        throws
    {
        let (peer, other) = try (server.connect(), server.connect(3))
        _ = try peer.ask("MULTI")
        _ = try peer.ask("PING")
        let list = try #require(try other.ask("CLIENT LIST").textValue)
        for line in list.split(separator: "\n") {
            let names = line.split(separator: " ").map { String($0.prefix { $0 != "=" }) }
            #expect(
                names == [
                    "id", "addr", "laddr", "fd", "name", "age", "idle", "flags", "db", "sub",
                    "psub",
                    "ssub", "multi", "watch", "qbuf", "qbuf-free", "argv-mem", "multi-mem", "rbs",
                    "rbp", "obl", "oll", "omem", "tot-mem", "events", "cmd", "user", "redir",
                    "resp",
                    "lib-name", "lib-ver",
                ]
            )
        }
        #expect(
            list.contains(" flags=xU ") && list.contains(" multi=1 ") && list.contains(" cmd=ping ")
        )
    }

    @Test func `a subcommand of CLIENT with too many words is refused as Redis does`() throws {
        try server.connect().expect(
            """
            > CLIENT GETNAME x
            > CLIENT SETNAME
            > CLIENT ID 1
            > CLIENT SETINFO LIB-NAME "a b"
            -ERR wrong number of arguments for 'client|getname' command
            -ERR wrong number of arguments for 'client|setname' command
            -ERR wrong number of arguments for 'client|id' command
            -ERR lib-name cannot contain spaces, newlines or special characters.
            """
        )
    }

    @Test func `CONFIG GET answers what clients ask for`() throws {
        let peer = try server.connect(3)
        let options = [
            "save": "", "appendonly": "no", "maxmemory": "0", "maxmemory-policy": "noeviction",
            "databases": "1", "timeout": "0", "port": "0", "requirepass": "",
            "cluster-enabled": "no",
            "slowlog-max-len": "128",
        ]
        for (name, value) in options {
            #expect(try peer.ask("CONFIG GET \(name)")[name]?.textValue == value, "\(name)")
        }
        #expect(try peer.ask("CONFIG GET maxm*").shown.contains("maxmemory-policy"))
    }

    @Test func `INFO has what redis-cli and ioredis look for`() throws {
        let peer = try server.connect()
        _ = try peer.ask("SET k 1")
        let all = try #require(try peer.ask("INFO").textValue)
        for line in [
            "# Server\r\nredis_version:7.0.15\r\n", "\r\nloading:0\r\n", "\r\nrole:master\r\n",
            "\r\nconnected_clients:1\r\n", "\r\narch_bits:64\r\n", "\r\ncluster_enabled:0\r\n",
            "\r\nmaxmemory_policy:noeviction\r\n", "\r\nused_memory_human:", "\r\nrun_id:",
            "\r\nblocked_clients:0\r\n", "\r\nused_cpu_user:", "\r\nos:Linux ",
            "\r\n\r\n# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\n",
        ] { #expect(all.contains(line), "\(all)") }
        let server = try #require(try peer.ask("INFO SERVER").textValue)
        #expect(server.hasPrefix("# Server\r\nredis_version:"))
        #expect(!server.contains("# Clients"))
        #expect(try peer.ask("INFO nothing") == .bulk([]))
        #expect(
            try peer.ask("INFO server keyspace").textValue?.contains("\r\n\r\n# Keyspace") == true
        )
    }

    @Test func `COMMAND tells every verb with its arity and its keys`() throws {
        let peer = try server.connect(3)
        let count = try #require(try peer.ask("COMMAND COUNT").integerValue)
        let list = try #require(try peer.ask("COMMAND LIST").elements).compactMap(\.textValue)
        #expect(list.count == Int(count))
        #expect(Set(list).isSuperset(of: ["get", "mset", "state.watch", "exec"]))
        let all = try #require(try peer.ask("COMMAND").elements)
        #expect(all.compactMap { $0.elements?.first?.textValue } == list)
        #expect(all.allSatisfy { $0.elements?.count == 10 })
        try peer.expect(
            """
            > COMMAND INFO mset nothing STATE.GET
            > COMMAND DOCS getdel nothing
            [["mset", -3, [+write], 1, -1, 2, ["@write", "@string"], [], [], []], (nil), \
            ["state.get", -2, [+readonly], 1, 1, 1, ["@read"], [], [], []]]
            {"getdel": {"summary": "Returns the value of a key and deletes it.", "since": "6.2.0", \
            "group": "string", "compatibility": "same", "arguments": \
            [{"name": "key", "type": "key"}]}}
            """
        )
        let documents = try #require(try peer.ask("COMMAND DOCS").pairs)
        #expect(documents.compactMap(\.key.textValue) == list)
    }

    @Test func `every verb that COMMAND tells of is carried out`() throws {
        let peer = try server.connect(3)
        for name in try #require(try peer.ask("COMMAND LIST").elements?.compactMap(\.textValue)) {
            let error = try server.connect().ask(name).errorText ?? ""
            #expect(!error.contains("unknown"), "\(name)")
        }
    }

    @Test func `CONFIG GET answers what benchmarks ask for`() throws {
        let server = try ServedKeyspace(HeldBacking(isHeld: false)) { $0.clientCount = 77 }
        try server.connect(3).expect(
            """
            > CONFIG GET append*
            > CONFIG GET save maxclients
            > CONFIG GET nothing
            {"appendfsync": "always", "appendonly": "yes"}
            {"maxclients": "77", "save": ""}
            {}
            """
        )
        #expect(
            try self.server.connect(3).ask("CONFIG GET appendonly")["appendonly"]?.textValue == "no"
        )
    }

    @Test func `TIME is seconds and microseconds`() throws {
        let before = wallSeconds()
        let parts = try #require(try server.connect().ask("TIME").elements?.compactMap(\.textValue))
        let seconds = try #require(Int64(parts[0]))
        let microseconds = try #require(Int64(parts[1]))
        // Not time(): it has the clock of the last tick, some milliseconds before this one.
        #expect((before...wallSeconds()).contains(seconds))
        #expect((0..<1_000_000).contains(microseconds))
    }
}

/// Seconds since 1970, on the clock that the daemon reads.
private func wallSeconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec)
}
