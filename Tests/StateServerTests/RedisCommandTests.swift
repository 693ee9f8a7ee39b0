import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Redis's commands, in RESP2 and RESP3, as its clients know them.
struct RedisCommandTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace() }

    @Test(arguments: [2, 3])
    func `values are set, read and deleted`(version: Int) throws {
        try server.connect(version).expect(
            """
            > SET k v
            > GET k
            > GET missing
            > SET k ""
            > GET k
            > STRLEN k
            > EXISTS k k missing
            > TYPE k
            > TYPE missing
            +OK
            "v"
            (nil)
            +OK
            ""
            0
            2
            +string
            +none
            > DBSIZE
            1
            > DEL k missing
            > UNLINK k
            1
            0
            > DBSIZE
            0
            """
        )
    }

    @Test(arguments: [2, 3])
    func `SET has NX, XX and GET`(version: Int) throws {
        try server.connect(version).expect(
            """
            > SET k 1 XX
            > SET k 1 NX
            > SET k 2 NX
            > SET k 2 XX
            > SET k 3 GET
            > SET k 4 NX GET
            > SET l 1 NX GET
            > SET l 2 get xx
            > MGET k l
            (nil)
            +OK
            (nil)
            +OK
            "2"
            "3"
            (nil)
            "1"
            ["3", "2"]
            """
        )
    }

    @Test(arguments: [2, 3])
    func `many keys at once`(version: Int) throws {
        try server.connect(version).expect(
            """
            > MSET a 1 b 2 a 3
            > MGET a missing b
            > MSETNX c 1 a 1
            > MSETNX c 1 d 1
            > MGET a b c d
            > GETDEL a
            > GETDEL a
            > EXISTS a b c d
            +OK
            ["3", (nil), "2"]
            0
            1
            ["3", "2", "1", "1"]
            "3"
            (nil)
            3
            """
        )
    }

    @Test func `numbers are counted and text is appended`() throws {
        try server.connect().expect(
            """
            > INCR n
            > INCRBY n 41
            > DECR n
            > DECRBY n 50
            > GET n
            > INCRBY n 9223372036854775807
            > INCRBY n 10
            > SET n 010
            > INCR n
            > APPEND t ab
            > APPEND t cd
            > GET t
            > STRLEN t
            > INCR t
            1
            42
            41
            -9
            "-9"
            9223372036854775798
            -ERR increment or decrement would overflow
            +OK
            -ERR value is not an integer or out of range
            2
            4
            "abcd"
            4
            -ERR value is not an integer or out of range
            """
        )
    }

    @Test func `null is another byte in each version of the protocol`() throws {
        let peer = try server.connect()
        try peer.socket.send(
            "GET missing\r\nWATCH k\r\nSET k 1\r\nMULTI\r\nEXEC\r\nCOMMAND INFO x\r\n"
        )
        let resp2 = "$-1\r\n+OK\r\n+OK\r\n+OK\r\n*-1\r\n*1\r\n*-1\r\n"
        var received: [UInt8] = []
        while received.count < resp2.utf8.count { received += try peer.socket.receive() ?? [] }
        #expect(String(decoding: received, as: UTF8.self) == resp2)

        let other = try server.connect(3)
        try other.socket.send(
            "GET missing\r\nWATCH k\r\nSET k 2\r\nMULTI\r\nEXEC\r\nCOMMAND INFO x\r\n"
        )
        let resp3 = "_\r\n+OK\r\n+OK\r\n+OK\r\n_\r\n*1\r\n_\r\n"
        received = []
        while received.count < resp3.utf8.count { received += try other.socket.receive() ?? [] }
        #expect(String(decoding: received, as: UTF8.self) == resp3)
    }

    @Test func `inline commands, in whatever case and with quotes`() throws {
        let peer = try server.connect()
        try peer.socket.send("\r\n  set \"a key\" 'it\\'s' \r\nGeT \"a\\x20key\"\nPING\r\n\n")
        #expect(try peer.next(3).map(\.shown) == ["+OK", #""it's""#, "+PONG"])
    }

    @Test func `values of any bytes come back as they were`() throws {
        let peer = try server.connect()
        var random = SplitMix(seed: Seed.base)
        for count in [0, 1, 255, 64 << 10, (1 << 20) + 1, 8 << 20] {
            let value = random.bytes(count)
            #expect(try peer.ask([Array("SET".utf8), Array("k".utf8), value]) == .simple("OK"))
            #expect(try peer.ask("GET k") == .bulk(value))
            #expect(try peer.ask("STRLEN k") == .integer(Int64(count)))
        }
    }

    @Test(arguments: [
        ("*", ["a", "a/b", "a/c", "b1", "b2", "ä"]), ("a*", ["a", "a/b", "a/c"]), ("a", ["a"]),
        ("a/", []), ("b?", ["b1", "b2"]), ("?", ["a"]), ("b[2-9]", ["b2"]), ("b[^2]", ["b1"]),
        ("*b*", ["a/b", "b1", "b2"]), ("a\\/b", ["a/b"]),
        ("[ab]*", ["a", "a/b", "a/c", "b1", "b2"]),
        ("", []),
    ])
    func `KEYS takes Redis's globs`(glob: String, expected: [String]) throws {
        let peer = try server.connect()
        _ = try peer.ask("MSET a 1 a/b 1 a/c 1 b1 1 b2 1 ä 1")
        let keys = try peer.ask([Array("KEYS".utf8), Array(glob.utf8)])
        #expect(keys.elements?.map(\.textValue) == expected)
    }

    @Test func `KEYS and MGET that would be too big a reply are refused`() throws {
        let server = try ServedKeyspace { $0.replyByteCount = 1_000 }
        let peer = try server.connect()
        let value = String(repeating: "v", count: 300)
        for name in ["a", "b", "c", "d"] { _ = try peer.ask("SET \(name)\(value) \(value)") }
        let refusal =
            "-TOOBIG the reply would have more than 1000 bytes, the limit; "
            + "use LIMIT and AFTER to get it in parts"
        let atOnce =
            "-TOOBIG the reply would have more than 1000 bytes, the limit of a command that is "
            + "answered at one moment; ask for less at once"
        let names = "a\(value) b\(value) c\(value) d\(value)"
        try peer.expect(
            """
            > KEYS *
            > MGET \(names)
            > MULTI
            > MGET \(names)
            > EXEC
            > STATE.LIST /
            > STATE.LIST / COUNT
            > PING
            \(refusal)
            \(atOnce)
            +OK
            +QUEUED
            -EXECABORT Transaction undone: command 1, 'mget': \(atOnce.dropFirst())
            \(refusal)
            4
            +PONG
            """
        )
    }
}
