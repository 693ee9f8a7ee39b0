import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Redis's commands about parts of values, names of keys, and comparisons.
struct ValueCommandTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace(HeldBacking(isHeld: false)) }

    @Test(arguments: [2, 3])
    func `SETNX, GETSET, GETRANGE and SETRANGE are those of Redis`(version: Int) throws {
        try server.connect(version).expect(
            """
            > SETNX k hello
            > SETNX k other
            > GETSET k HELLO
            > GETSET new 1
            > GETRANGE k 1 3
            > GETRANGE k -3 -1
            > GETRANGE k 0 -1
            > GETRANGE k 5 9
            > GETRANGE k -1 -3
            > SUBSTR k 0 0
            > GETRANGE missing 0 -1
            > SETRANGE k 1 ipp
            > GET k
            > SETRANGE gap 2 x
            > STRLEN gap
            > SETRANGE k -1 x
            > SETRANGE k 9223372036854775807 x
            > GETRANGE k a 1
            1
            0
            "hello"
            (nil)
            "ELL"
            "LLO"
            "HELLO"
            ""
            ""
            "H"
            ""
            5
            "HippO"
            3
            3
            -ERR offset is out of range
            -ERR string exceeds maximum allowed size (8388608 bytes, limits.valueBytes)
            -ERR value is not an integer or out of range
            """
        )
    }

    @Test func `INCRBYFLOAT adds as long double does`() throws {
        try server.connect().expect(
            """
            > SET f 10.50
            > INCRBYFLOAT f 0.1
            > INCRBYFLOAT f -5
            > SET f 5.0e3
            > INCRBYFLOAT f 2.0e2
            > INCRBYFLOAT none 3
            > INCRBYFLOAT none -3
            > INCRBYFLOAT f x
            > INCRBYFLOAT f inf
            > SET f abc
            > INCRBYFLOAT f 1
            +OK
            "10.6"
            "5.6"
            +OK
            "5200"
            "3"
            "0"
            -ERR value is not a valid float
            -ERR increment would produce NaN or Infinity
            +OK
            -ERR value is not a valid float
            """
        )
    }

    @Test func `a sum of thousands of digits is a number again`() throws {
        let peer = try server.connect()
        _ = try peer.ask("SET f 3e4000")
        for _ in 0..<2 {
            #expect(try peer.ask("INCRBYFLOAT f 0").textValue?.utf8.count == 4_001)
        }
    }

    @Test func `SET, DELEX and DIGEST compare`() throws {
        try server.connect().expect(
            """
            > SET k v IFEQ v
            > SET k v IFNE v
            > SET k w IFEQ x
            > SET k w IFEQ v GET
            > SET k x IFNE w
            > DIGEST k
            > SET k y IFDEQ 9f2ab43bd0a83d0f
            > SET k y IFDNE 0000000000000000
            > SET k z IFDEQ 12
            > DELEX k IFEQ z
            > DELEX k IFNE z
            > DELEX k
            > DIGEST k
            > DELEX k IFNE z
            > SET k v IFEQ v NX
            (nil)
            +OK
            (nil)
            "v"
            (nil)
            "$"
            (nil)
            +OK
            -ERR must be exactly 16 hexadecimal characters
            0
            1
            0
            (nil)
            0
            -ERR syntax error
            """
            .replacing("$", with: digest(of: "w"))
        )
    }

    private func digest(of text: String) -> String {
        let hash = Array(text.utf8).withUnsafeBytes { ValueHash.xxh3($0) }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    @Test func `RENAME and COPY take the time along, in one commit`() throws {
        try server.connect().expect(
            """
            > SET a 1 EX 100
            > RENAME a b
            > TTL b
            > EXISTS a
            > RENAME a b
            > RENAMENX b b
            > RENAME b b
            > SET c 2
            > RENAMENX b c
            > RENAMENX b d
            > COPY d c
            > COPY d c REPLACE
            > TTL c
            > COPY c c
            > COPY d e DB 1
            > COPY missing e
            > MULTI
            > SET x 7
            > RENAME x y
            > GET y
            > EXEC
            > EXISTS x y
            +OK
            +OK
            100
            0
            -ERR no such key
            0
            +OK
            +OK
            0
            1
            0
            1
            100
            -ERR source and destination objects are the same
            -ERR DB index is out of range: there is one database, 0
            0
            +OK
            +QUEUED
            +QUEUED
            +QUEUED
            [+OK, +OK, "7"]
            1
            """
        )
    }

    @Test func `what DUMP returns RESTORE sets, and nothing else`() throws {
        let peer = try server.connect()
        for value in [
            "", "x", String(repeating: "y", count: 100), String(repeating: "z", count: 20_000),
        ] {
            _ = try peer.ask([Array("SET".utf8), Array("k".utf8), Array(value.utf8)])
            let dump = try #require(try peer.ask("DUMP k").byteValue)
            let restore = ["RESTORE", "copy", "0"].map { Array($0.utf8) } + [dump]
            #expect(try peer.ask(restore) == .simple("OK"))
            #expect(try peer.ask("GET copy").textValue == value)
            #expect(
                try peer.ask(restore).errorText == "BUSYKEY Target key name already exists."
            )
            var broken = dump
            broken[1] ^= 1
            let refused = ["RESTORE", "other", "0"].map { Array($0.utf8) } + [broken]
            #expect(
                try peer.ask(refused).errorText
                    == "ERR DUMP payload version or checksum are wrong"
            )
            _ = try peer.ask("DEL copy")
        }
        // From Redis 7.0: a number, and 60 equal letters, compressed.
        let number: [UInt8] = [
            0x00, 0xC0, 0x0A, 0x0A, 0x00, 0x6A, 0x61, 0x81, 0x0C, 0x3E, 0xF5, 0x0E, 0x58,
        ]
        let reply = try peer.ask(["RESTORE", "n", "0"].map { Array($0.utf8) } + [number])
        #expect(reply == .simple("OK") || reply.errorText?.contains("checksum") == true)
    }

    @Test func `MSETEX sets all or none`() throws {
        try server.connect().expect(
            """
            > MSETEX 2 a 1 b 2 EX 50
            > TTL b
            > MSETEX 2 a 3 c 4 NX
            > EXISTS c
            > MSETEX 2 a 3 c 4 XX
            > MSETEX 1 a 3 XX KEEPTTL
            > TTL a
            > MSETEX 2 a 3
            > MSETEX 0 a 3
            1
            50
            0
            0
            0
            1
            50
            -ERR wrong number of key-value pairs
            -ERR invalid numkeys value
            """
        )
    }

    @Test func `RANDOMKEY, TOUCH, OBJECT and MEMORY answer about keys`() throws {
        let peer = try server.connect()
        #expect(try peer.ask("RANDOMKEY") == .null)
        _ = try peer.ask("MSET a 1 b two")
        let found = try Set((0..<40).map { _ in try peer.ask("RANDOMKEY").textValue })
        #expect(found == ["a", "b"])
        try peer.expect(
            """
            > TOUCH a b c
            > OBJECT ENCODING a
            > OBJECT ENCODING b
            > OBJECT REFCOUNT a
            > OBJECT IDLETIME a
            > OBJECT ENCODING c
            > MEMORY USAGE c
            > OBJECT NONSENSE a
            2
            "int"
            "embstr"
            1
            0
            (nil)
            (nil)
            -ERR unknown subcommand 'NONSENSE'. Try OBJECT with ENCODING, IDLETIME or REFCOUNT and a key
            """
        )
        #expect(try peer.ask("MEMORY USAGE b").integerValue ?? 0 > 50)
    }

    @Test func `FLUSHALL deletes everything in one commit`() throws {
        let peer = try server.connect()
        _ = try peer.ask("MSET a 1 b 2 c 3")
        let before = try peer.ask("STATE.STATUS")["revision"]?.integerValue ?? 0
        #expect(try peer.ask("FLUSHALL ASYNC") == .simple("OK"))
        #expect(try peer.ask("DBSIZE") == .integer(0))
        #expect(try peer.ask("STATE.STATUS")["revision"] == .integer(before + 1))
        #expect(try peer.ask("FLUSHDB now").errorText == "ERR syntax error")
    }

    @Test func `notifications name the operation`() throws {
        let listener = try server.connect(3)
        _ = try listener.ask("PSUBSCRIBE __keyevent@0__:*")
        let peer = try server.connect()
        for command in [
            "SET a 1 EX 100", "INCR a", "DECRBY a 3", "APPEND a 5", "SETRANGE a 0 9",
            "INCRBYFLOAT a 0.5", "RENAME a b", "COPY b c", "SETEX a 10 x", "GETDEL a",
            "SET a 1 KEEPTTL", "MSETEX 1 a 2 PX 9000", "PERSIST a",
        ] { _ = try peer.ask(command) }
        let messages = try listener.next(17).map { reply in
            let texts = (reply.elements ?? []).compactMap(\.textValue)
            return "\(texts[2].dropFirst("__keyevent@0__:".count)) \(texts[3])"
        }
        #expect(
            messages == [
                "set a", "expire a", "incrby a", "incrby a", "append a", "setrange a",
                "incrbyfloat a", "rename_from a", "rename_to b", "copy_to c", "set a", "expire a",
                "del a", "set a", "set a", "expire a", "persist a",
            ]
        )
    }
}
