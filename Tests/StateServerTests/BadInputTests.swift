import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Each with a clear error and nothing changed; the server goes on.
struct BadInputTests {
    private let server: ServedKeyspace

    init() throws {
        server = try ServedKeyspace { $0.limits.valueByteCount = 2_000 }
        try #require(try server.connect().ask("SET k 1") == .simple("OK"))
    }

    private func expectUnharmed() throws {
        #expect(try server.connect().ask("GET k") == .bulk([0x31]))
        #expect(server.durable() == ["k": "1"])
    }

    @Test(arguments: [
        ("*-9223372036854775808\r\n", "invalid multibulk length"),
        ("*99999999999999999999999\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*\r\n", "invalid multibulk length"),
        ("*1x\r\n", "invalid multibulk length"),
        ("*1\n$4\r\nPING\r\n", "invalid multibulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$\r\n", "invalid bulk length"),
        ("*1\r\n$four\r\nPING\r\n", "invalid bulk length"),
        ("*1\r\n$99999999999999999999999\r\n", "invalid bulk length"),
        ("*1\r\n$1073741824\r\n", "invalid bulk length"),
        ("*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
        ("*1\r\n:4\r\n", "expected '$', got ':'"),
        ("*1\r\n$4\r\nPINGPONG\r\n", "expected CR LF after a bulk string"),
        ("SET \"k 2\r\n", "unbalanced quotes in request"),
        ("SET \"k\"2 3\r\n", "unbalanced quotes in request"),
    ])
    func `a frame that is none is answered once and ends the connection`(
        frame: String,
        sentence: String
    ) throws {
        let peer = try server.connect()
        // A write that stands behind it is never carried out.
        let write = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n2\r\n"
        try peer.socket.send("*1\r\n$4\r\nPING\r\n" + frame + write)
        #expect(try peer.rest().map(\.shown) == ["+PONG", "-ERR Protocol error: \(sentence)"])
        try expectUnharmed()
    }

    @Test(arguments: ["*-1\r\n", "*-10\r\n", "*0\r\n"])
    func `a frame of less than one argument is nothing, as in Redis`(frame: String) throws {
        let peer = try server.connect()
        try peer.socket.send("*1\r\n$4\r\nPING\r\n" + frame + frame + "*1\r\n$4\r\nPING\r\n")
        #expect(try peer.next(2).map(\.shown) == ["+PONG", "+PONG"])
        try expectUnharmed()
    }

    @Test func `an argument over the limit is passed over and the connection goes on`() throws {
        let peer = try server.connect()
        let long = [UInt8](repeating: 0x61, count: 2_001)
        try peer.send([
            [Array("SET".utf8), Array("k".utf8), long],
            [Array("MSET".utf8), Array("k".utf8), long, Array("l".utf8), long],
            [Array("PING".utf8)], [long], [Array("GET".utf8), Array("k".utf8)],
        ])
        let refusal = "-TOOBIG an argument has 2001 bytes; the limit is 2000"
        #expect(
            try peer.next(5).map(\.shown) == [refusal, refusal, "+PONG", refusal, #""1""#]
        )
        // However large it says it is, it costs no memory; however it is cut, it is passed over.
        try peer.socket.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$400000000\r\n")
        for _ in 0..<400 { try peer.socket.send([UInt8](repeating: 0x62, count: 1_000_000)) }
        try peer.socket.send("\r\n")
        #expect(
            try peer.next().shown == "-TOOBIG an argument has 400000000 bytes; the limit is 2000"
        )
        #expect(try peer.ask("PING") == .simple("PONG"))
        try expectUnharmed()
    }

    @Test func `an inline line without an end is refused at 64 KiB`() throws {
        let peer = try server.connect()
        try peer.socket.send(String(repeating: "x", count: 64 << 10))
        #expect(
            try peer.rest().map(\.shown)
                == ["-ERR Protocol error: too big inline request; the limit is 65536 bytes"]
        )
        try expectUnharmed()
    }

    @Test(
        arguments: [
            ([], "a key has at least 1 byte"),
            (
                Array(repeating: 0x61, count: 1_000) + Array(repeating: 0x62, count: 25),
                "key '\(String(repeating: "a", count: 64))…' has 1025 bytes; the limit is 1024"
            ),
            ([0x61, 0xFF], "key 'a\\xFF' is not UTF-8"),
            ([0xC0, 0x80], "key '\\xC0\\x80' is not UTF-8"),
            (Array("a\nb".utf8), "key 'a\\x0Ab' has a control character"),
            ([0x61, 0], "key 'a\\x00' has a control character"),
            (Array("a\u{85}".utf8), "key 'a\\xC2\\x85' has a control character"),
            (Array("a/".utf8), "key 'a/' ends in '/', which is how a prefix is written, not a key"),
            (Array("/".utf8), "key '/' ends in '/', which is how a prefix is written, not a key"),
        ] as [([UInt8], String)]
    )
    func `an illegal key is refused by name, whatever is done with it`(
        key: [UInt8],
        sentence: String
    ) throws {
        let peer = try server.connect()
        let commands = [
            "GET", "SET * 1", "APPEND * 1", "INCR", "DECRBY * 1", "GETDEL", "TTL", "PERSIST",
            "EXPIRE * 1",
            "SETEX * 1 1", "GETEX * EX 1", "DEL k", "EXISTS k",
            "MGET k", "MSET k 2 * 2", "MSETNX l 2 * 2", "TYPE", "STRLEN", "WATCH k", "STATE.GET",
            "STATE.SET * 1", "STATE.APPLY 2 SET k 2 DELETE", "STATE.APPLY 1 CHECK * 0",
        ]
        for command in commands {
            var words = Peer.words(command)
            if let place = words.firstIndex(of: Array("*".utf8)) {
                words[place] = key
            } else {
                words.append(key)
            }
            #expect(try peer.ask(words).errorText == "ERR \(sentence)", "\(command)")
        }
        try expectUnharmed()
    }

    @Test func `a value over the limit is refused, also by APPEND`() throws {
        let peer = try server.connect()
        let value = String(repeating: "a", count: 1_999)
        #expect(try peer.ask("SET l \(value)") == .simple("OK"))
        #expect(try peer.ask("APPEND l b") == .integer(2_000))
        #expect(
            try peer.ask("APPEND l c").errorText
                == "TOOBIG the value of key 'l' has 2001 bytes; the limit is 2000"
        )
        #expect(try peer.ask("STRLEN l") == .integer(2_000))
        #expect(try peer.ask("DEL l") == .integer(1))
        try expectUnharmed()
    }

    @Test(arguments: [
        "GET", "GET a b", "SET k", "MSET", "MSET k", "MSET k 1 l", "MSETNX k 2 l", "DEL", "INCR",
        "INCRBY k", "APPEND k", "ECHO", "PING a b", "MULTI x", "EXEC x", "WATCH", "SCAN",
        "STATE.GET", "STATE.REVERT k TO", "STATE.SET k", "STATE.UNWATCH", "STATE.STATUS x",
        "STATE.LIST", "STATE.DELETE", "STATE.WATCH", "SELECT", "DBSIZE x", "KEYS",
    ])
    func `a wrong number of arguments is refused in Redis's words`(command: String) throws {
        let name = command.prefix { $0 != " " }.lowercased()
        #expect(
            try server.connect().ask(command).errorText
                == "ERR wrong number of arguments for '\(name)' command"
        )
        try expectUnharmed()
    }

    @Test func `an unknown command is refused in Redis's words`() throws {
        let peer = try server.connect()
        #expect(
            try peer.ask("FROBNICATE a b").errorText
                == "ERR unknown command 'FROBNICATE', with args beginning with: 'a' 'b' "
        )
        #expect(
            try peer.ask([[], []]).errorText
                == "ERR unknown command '', with args beginning with: '' "
        )
        // A name is compared with all its bytes.
        #expect(
            try peer.ask([Array("GET\0".utf8), Array("k".utf8)]).errorText?
                .hasPrefix("ERR unknown command 'GET") == true
        )
        // What would end the reply, or is no UTF-8, does not get into it.
        #expect(
            try peer.ask([Array("A\r\n+OK".utf8), [0xFF]]).errorText
                == "ERR unknown command 'A\\x0D\\x0A+OK', with args beginning with: '\u{FFFD}' "
        )
        #expect(try peer.ask("PING") == .simple("PONG"))
    }

    @Test(arguments: [
        ("INCRBY k x", "ERR value is not an integer or out of range"),
        ("INCRBY k 9223372036854775807", "ERR increment or decrement would overflow"),
        ("INCRBY k 9223372036854775808", "ERR value is not an integer or out of range"),
        ("DECRBY k -9223372036854775808", "ERR decrement would overflow"),
        ("SET k 2 EX", "ERR syntax error"), ("SET k 2 NX XX", "ERR syntax error"),
        ("SCAN x", "ERR invalid cursor"), ("SCAN 0 COUNT 0", "ERR syntax error"),
        ("SCAN 0 MATCH", "ERR syntax error"),
        ("SELECT 1", "ERR DB index is out of range: there is one database, 0"),
        ("SCAN 9", "ERR cursor 9 is no longer valid; begin again with 0"),
        ("STATE.SET k 2 IFREV -1", "ERR revision '-1' is not a whole number of at least 0"),
        ("STATE.SET k 2 IFREV", "ERR syntax error: in option 'IFREV' of STATE.SET"),
        ("STATE.LIST / LIMIT -1", "ERR LIMIT '-1' is not a whole number of at least 0"),
        ("STATE.LIST / AT", "ERR syntax error: in option 'AT' of STATE.LIST"),
        ("STATE.APPLY 2 SET k 2", "ERR STATE.APPLY says 2 steps but has 1"),
        ("STATE.APPLY 1 SET k", "ERR syntax error: in step 1 of STATE.APPLY"),
        ("STATE.APPLY x", "ERR STATE.APPLY begins with the number of steps, from 0 to 1000000"),
        ("STATE.DELETE DRYRUN", "ERR syntax error: STATE.DELETE needs a pattern"),
        ("STATE.UNWATCH 1", "ERR this connection has no watch 1"),
        (
            "CONFIG SET save x",
            "ERR CONFIG SET 'save': clients cannot change the configuration; edit the configuration "
                + "file and use STATE.RELOAD"
        ),
        (
            "COMMAND FROB",
            "ERR unknown subcommand 'FROB'. Try COMMAND with COUNT, DOCS, GETKEYS, GETKEYSANDFLAGS, "
                + "INFO or LIST"
        ),
    ])
    func `arguments that make no sense are refused, naming them`(
        command: String,
        text: String
    ) throws {
        #expect(try server.connect().ask(command).errorText == text)
        try expectUnharmed()
    }

    @Test func `a client that sends half a command and leaves changes nothing`() throws {
        let whole = Array("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nafter\r\n".utf8)
        for count in 1..<whole.count {
            let socket = try ByteSocket(path: server.socketPath)
            try socket.send(Array(whole[..<count]))
            if count.isMultiple(of: 2) { socket.endSending() }
            socket.end()
        }
        try server.waitForClients(0)
        try expectUnharmed()
    }

    @Test func `a client that leaves at once has its commands carried out`() throws {
        let busy = try server.connect()
        try server.catchUp()
        try server.keyspace.withCore { _ in
            // The loop stands at this one, and finds the other client when it has come and gone.
            try busy.send("PING")
            let socket = try ByteSocket(path: server.socketPath)
            try socket.send("SET k 2\r\nSET l 3\r\n")
            socket.end()
        }
        busy.socket.end()
        try server.waitForClients(0)
        #expect(server.durable() == ["k": "2", "l": "3"])
    }

    @Test func `a client that ends its side is answered first`() throws {
        let peer = try server.connect()
        try peer.send("SET k 2", "GET k", "QUIT", "SET k 3")
        peer.socket.endSending()
        #expect(try peer.rest().map(\.shown) == ["+OK", #""2""#, "+OK"])
        let other = try server.connect()
        try other.send("GET k", "GET k")
        other.socket.endSending()
        #expect(try other.rest().map(\.shown) == [#""2""#, #""2""#])
    }

    @Test func `10,000 pipelined commands in one write are answered in order`() throws {
        let peer = try server.connect()
        try peer.send((0..<10_000).map { [Array("ECHO".utf8), Array(String($0).utf8)] })
        for number in 0..<10_000 {
            try #require(try peer.next() == .bulk(Array(String(number).utf8)))
        }
        try peer.send((0..<10_000).map { _ in [Array("INCR".utf8), Array("n".utf8)] })
        #expect(try peer.next(10_000) == (1...10_000).map { .integer($0) })
    }
}
