import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Redis's commands about the time of keys; the clock on which deadlines run is the test's.
struct ExpiryCommandTests {
    private let server: ServedKeyspace
    private let clock = Observed<Int64>(1_000_000)

    init() throws {
        server = try ServedKeyspace(HeldBacking(isHeld: false))
        server.keyspace.withCore { [clock] in $0.entries.clock = { clock.current } }
    }

    @Test(arguments: [2, 3])
    func `SET, SETEX and PSETEX take a time, and TTL tells it`(version: Int) throws {
        try server.connect(version).expect(
            """
            > SET k v
            > TTL k
            > PTTL missing
            > SET k v EX 100
            > TTL k
            > SET k v px 1499 XX
            > TTL k
            > PTTL k
            > SET k w KEEPTTL
            > PTTL k
            > SET k v
            > TTL k
            > SETEX k 10 v
            > TTL k
            > PSETEX k 1500 v
            > TTL k
            > SET k x GET PX 70
            > PTTL k
            > SET k y NX EX 5
            > PTTL k
            +OK
            -1
            -2
            +OK
            100
            +OK
            1
            1499
            +OK
            1499
            +OK
            -1
            +OK
            10
            +OK
            2
            "v"
            70
            (nil)
            70
            """
        )
    }

    @Test func `of an option that is repeated the last counts`() throws {
        try server.connect().expect(
            """
            > SET k v NX EX x NX EX 20
            > TTL k
            > SET k w KEEPTTL XX KEEPTTL XX
            > TTL k
            > GETEX k PX 5 PX 700
            > PTTL k
            > GETEX k PERSIST PERSIST
            > TTL k
            +OK
            20
            +OK
            20
            "w"
            700
            "w"
            -1
            """
        )
    }

    @Test(arguments: [2, 3])
    func `times are told as they were set, since 1970`(version: Int) throws {
        try server.connect(version).expect(
            """
            > EXPIRETIME k
            > SET k v
            > EXPIRETIME k
            > SET k v EXAT 33177117420
            > EXPIRETIME k
            > PEXPIRETIME k
            > SET k v PXAT 33177117420500
            > EXPIRETIME k
            > PEXPIRETIME k
            > EXPIREAT k 33177117421
            > PEXPIRETIME k
            > PEXPIREAT k 33177117421999
            > PEXPIRETIME k
            > GETEX k EXAT 33177117423
            > PEXPIRETIME k
            > GETEX k PXAT 33177117423001
            > PEXPIRETIME k
            -2
            +OK
            -1
            +OK
            33177117420
            33177117420000
            +OK
            33177117421
            33177117420500
            1
            33177117421000
            1
            33177117421999
            "v"
            33177117423000
            "v"
            33177117423001
            """
        )
    }

    @Test(arguments: [2, 3])
    func `EXPIRE has NX, XX, GT and LT`(version: Int) throws {
        try server.connect(version).expect(
            """
            > EXPIRE k 100
            > SET k v
            > EXPIRE k 100 XX
            > EXPIRE k 100 GT
            > EXPIRE k 100 LT
            > EXPIRE k 200 NX
            > TTL k
            > EXPIRE k 100000 LT
            > EXPIRE k 20 GT
            > EXPIRE k 200000 GT XX
            > TTL k
            > PEXPIRE k 50 xx lt
            > PTTL k
            > PERSIST k
            > PERSIST k
            > PERSIST missing
            > TTL k
            > EXPIRE k 7 nx
            > GETEX k
            > TTL k
            > GETEX k PERSIST
            > TTL k
            > GETEX k PERSIST
            > GETEX missing EX 5
            > GETEX k EX 5
            > TTL k
            > GETEX k PX 5
            > PTTL k
            0
            +OK
            0
            0
            1
            0
            100
            0
            0
            1
            200000
            1
            50
            1
            0
            0
            -1
            1
            "v"
            7
            "v"
            -1
            "v"
            (nil)
            "v"
            5
            "v"
            5
            """
        )
    }

    @Test(arguments: [2, 3])
    func `a time that is over deletes the key`(version: Int) throws {
        let peer = try server.connect(version)
        for command in [
            "EXPIRE k 0", "EXPIRE k -1", "PEXPIRE k -9223372036854775808", "EXPIREAT k 1",
            "PEXPIREAT k -1",
        ] {
            _ = try peer.ask("SET k v")
            #expect(try peer.ask(command) == .integer(1), "\(command)")
            #expect(try peer.ask("EXISTS k") == .integer(0), "\(command)")
        }
        for command in ["SET k w EXAT 1", "SET k w PXAT 1"] {
            _ = try peer.ask("SET k v")
            #expect(try peer.ask(command) == .simple("OK"), "\(command)")
            #expect(try peer.ask("GET k") == .null, "\(command)")
        }
        _ = try peer.ask("SET k v")
        #expect(try peer.ask("GETEX k PXAT 1").textValue == "v")
        #expect(try peer.ask("GET k") == .null)
    }

    @Test(arguments: [
        ("SET k v EX 0", "ERR invalid expire time in 'set' command"),
        ("SET k v EX -1", "ERR invalid expire time in 'set' command"),
        ("SET k v PXAT 0", "ERR invalid expire time in 'set' command"),
        ("SET k v EX 9223372036854776", "ERR invalid expire time in 'set' command"),
        ("SET k v PX 9223372036854775807", "ERR invalid expire time in 'set' command"),
        ("SET k v EX x", "ERR value is not an integer or out of range"),
        ("SET k v EX", "ERR syntax error"),
        ("SET k v EX 1 PX 1", "ERR syntax error"),
        ("SET k v EX 1 KEEPTTL", "ERR syntax error"),
        ("SET k v KEEPTTL PXAT 1", "ERR syntax error"),
        ("SET k v EX x FOO", "ERR syntax error"),
        ("SETEX k 0 v", "ERR invalid expire time in 'setex' command"),
        ("SETEX k x v", "ERR value is not an integer or out of range"),
        ("SETEX k 1", "ERR wrong number of arguments for 'setex' command"),
        ("PSETEX k -5 v", "ERR invalid expire time in 'psetex' command"),
        ("GETEX k EX 0", "ERR invalid expire time in 'getex' command"),
        ("GETEX k EX 1 PERSIST", "ERR syntax error"),
        ("GETEX k KEEPTTL", "ERR syntax error"),
        ("EXPIRE k", "ERR wrong number of arguments for 'expire' command"),
        ("EXPIRE k x", "ERR value is not an integer or out of range"),
        ("EXPIRE k 9223370399119966", "ERR invalid expire time in 'expire' command"),
        ("EXPIRE k 9223372036854776", "ERR invalid expire time in 'expire' command"),
        ("PEXPIRE k 9223372036854770000", "ERR invalid expire time in 'pexpire' command"),
        ("EXPIREAT k -9223372036854776", "ERR invalid expire time in 'expireat' command"),
        ("EXPIRE k 1 AB", "ERR Unsupported option AB"),
        ("EXPIRE k 1 XX AB", "ERR Unsupported option AB"),
        (
            "EXPIRE k 1 NX GT",
            "ERR NX and XX, GT or LT options at the same time are not compatible"
        ),
        ("EXPIRE k 1 LT GT", "ERR GT and LT options at the same time are not compatible"),
        ("TTL", "ERR wrong number of arguments for 'ttl' command"),
        (
            "STATE.SET k v EXPIRES soon",
            "ERR EXPIRES must be a time above 0 such as 30s, 1h30m or 500 (milliseconds), or never "
                + "or keep, not 'soon'"
        ),
    ]) func `a wrong time is refused in the words of Redis`(command: String, error: String) throws {
        let peer = try server.connect()
        _ = try peer.ask("SET k old EX 77")
        #expect(try peer.ask(command).errorText == error)
        #expect(try peer.ask("TTL k") == .integer(77) && peer.ask("GET k").textValue == "old")
    }

    @Test func `INCR and APPEND keep the time, a set ends it, GETDEL with it`() throws {
        try server.connect().expect(
            """
            > SET n 1 EX 100
            > INCR n
            > INCRBY n 5
            > APPEND n 0
            > TTL n
            > MSET n 1
            > TTL n
            > EXPIRE n 100
            > GETDEL n
            > INCR n
            > TTL n
            > MULTI
            > SET m 1 EX 50
            > INCR m
            > TTL m
            > PERSIST m
            > EXPIRE m 60
            > EXEC
            > TTL m
            +OK
            2
            7
            2
            100
            +OK
            -1
            1
            "1"
            1
            -1
            +OK
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            +QUEUED
            [+OK, 2, 50, 1, 1]
            60
            """
        )
    }
}
