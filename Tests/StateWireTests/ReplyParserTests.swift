import StateEngine
import StateTestSupport
import StateWire
import Testing

struct ReplyParserTests {
    /// Every type of RESP2 and RESP3 that a server may send, and what it means.
    static let transcript: [(wire: String, reply: Reply)] = [
        ("+OK\r\n", .simple("OK")),
        ("-ERR no such key\r\n", .error(StateError(.err, "no such key"))),
        ("-CONFLICT revision is 7\r\n", .error(StateError(.conflict, "revision is 7"))),
        ("-sentence without a code\r\n", .error(StateError(.err, "sentence without a code"))),
        (":-42\r\n", .integer(-42)),
        ("$5\r\na\r\nbc\r\n", .bulk(Array("a\r\nbc".utf8))),
        ("$0\r\n\r\n", .bulk([])),
        ("$-1\r\n", .null),
        ("*-1\r\n", .null),
        ("_\r\n", .null),
        ("#t\r\n", .boolean(true)),
        ("#f\r\n", .boolean(false)),
        (",1.5\r\n", .double(1.5)),
        (",-inf\r\n", .double(-.infinity)),
        ("(12345678901234567890\r\n", .bulk(Array("12345678901234567890".utf8))),
        ("(42\r\n", .integer(42)),
        ("=7\r\ntxt:abc\r\n", .bulk(Array("abc".utf8))),
        ("!9\r\nERR wrong\r\n", .error(StateError(.err, "wrong"))),
        ("*0\r\n", .array([])),
        ("%0\r\n", .map([])),
        ("~2\r\n:1\r\n:2\r\n", .array([.integer(1), .integer(2)])),
        (
            "*3\r\n*1\r\n*0\r\n$1\r\nx\r\n_\r\n",
            .array([.array([.array([])]), .bulk([0x78]), .null])
        ),
        (
            "%2\r\n$1\r\na\r\n:1\r\n+b\r\n*1\r\n#t\r\n",
            .map([
                .init(key: .bulk([0x61]), value: .integer(1)),
                .init(key: .simple("b"), value: .array([.boolean(true)])),
            ])
        ),
        (
            ">3\r\n$12\r\nstate.synced\r\n:1\r\n:9\r\n",
            .push([.bulk(Array("state.synced".utf8)), .integer(1), .integer(9)])
        ),
        ("|1\r\n+ttl\r\n:3\r\n:7\r\n", .integer(7)),
        (
            "*2\r\n|1\r\n+ttl\r\n:3\r\n:7\r\n|0\r\n:8\r\n",
            .array([.integer(7), .integer(8)])
        ),
    ]

    private func replies(
        to wire: [UInt8],
        chunkByteCount: Int,
        byteLimit: Int = 1 << 20
    ) throws(ReplyError) -> [Reply] {
        var parser = ReplyParser(byteLimit: byteLimit)
        var replies: [Reply] = []
        var rest = wire[...]
        while !rest.isEmpty {
            let chunk = Array(rest.prefix(chunkByteCount))
            rest = rest.dropFirst(chunkByteCount)
            chunk.withUnsafeBytes { parser.append($0) }
            while let reply = try parser.next() { replies.append(reply) }
        }
        return replies
    }

    @Test(arguments: 1...64)
    func `a reply cut anywhere still parses`(chunkByteCount: Int) throws {
        let wire = Self.transcript.flatMap { Array($0.wire.utf8) }
        let found = try replies(to: wire, chunkByteCount: chunkByteCount)
        #expect(found == Self.transcript.map(\.reply))
    }

    @Test(arguments: transcript.map(\.wire))
    func `a reply without its last byte is no reply yet`(wire: String) throws {
        #expect(try replies(to: Array(wire.utf8.dropLast()), chunkByteCount: 1 << 20).isEmpty)
    }

    @Test(arguments: [
        ("?1\r\n", ReplyError.unknownType(0x3F)),
        ("\r\n", .malformed),
        (":12x\r\n", .badNumber("12x")),
        ("$99999999999999999999\r\n", .badNumber("99999999999999999999")),
        ("$?\r\n", .badNumber("?")),
        ("$3\r\nabcd\r\n", .malformed),
        ("$2000000\r\n", .tooBig),
        ("*2000000000\r\n", .tooBig),
        ("#x\r\n", .malformed),
        (",one\r\n", .badNumber("one")),
        ("+a\nb\r\n", .malformed),
        (String(repeating: "*1\r\n", count: 17), .tooDeep),
        ("+" + String(repeating: "x", count: 66_000), .tooBig),
    ])
    func `what is no reply is refused by what is wrong`(wire: String, error: ReplyError) {
        #expect(throws: error) { try replies(to: Array(wire.utf8), chunkByteCount: 100) }
    }

    @Test func `a reply of many elements is bounded as a whole, and the next one starts anew`()
        throws
    {
        let element = "$1000\r\n" + String(repeating: "x", count: 1_000) + "\r\n"
        let fits = Array(("*50\r\n" + String(repeating: element, count: 50)).utf8)
        let limit = fits.count
        let twice = try replies(to: fits + fits, chunkByteCount: 4_096, byteLimit: limit)
        #expect(twice.count == 2)
        let larger = Array(("*51\r\n" + String(repeating: element, count: 51)).utf8)
        #expect(throws: ReplyError.tooBig) {
            try replies(to: larger, chunkByteCount: 4_096, byteLimit: limit)
        }
    }

    @Test func `a claimed length allocates nothing before it arrives`() throws {
        // A billion elements claimed at sixteen levels would be more memory than there is.
        var parser = ReplyParser()
        let claim = Array(String(repeating: "*500000000\r\n", count: 16).utf8)
        claim.withUnsafeBytes { parser.append($0) }
        #expect(try parser.next() == nil)
    }

    @Test func `a map that RESP2 sent as a flat array has the same fields`() {
        let flat = Reply.array([.bulk(Array("revision".utf8)), .integer(3)])
        #expect(flat["revision"] == .integer(3))
        #expect(flat["count"] == nil)
        #expect(Reply.array([.integer(1)])["revision"] == nil)
    }
}

struct RequestWriterTests {
    @Test func `a request is an array of bulk strings`() {
        var writer = RequestWriter()
        writer.append([Array("SET".utf8), Array("k".utf8), [0, 0xFF, 0x0D, 0x0A]])
        writer.append(words: "PING")
        let expected =
            Array("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n".utf8) + [0, 0xFF, 0x0D, 0x0A]
            + Array("\r\n*1\r\n$4\r\nPING\r\n".utf8)
        #expect(writer.bytes == expected)
    }

    @Test(arguments: [0, 9, 10, 99, 100, 65_536])
    func `a length is written in decimal`(count: Int) {
        var writer = RequestWriter()
        let argument = [UInt8](repeating: 0x78, count: count)
        writer.append([argument])
        #expect(writer.bytes == Array("*1\r\n$\(count)\r\n".utf8) + argument + [0x0D, 0x0A])
    }

    @Test func `what a writer wrote reads back as replies`() throws {
        var writer = RequestWriter()
        writer.append(words: "GET", "audio/volume")
        var parser = ReplyParser()
        writer.bytes.withUnsafeBytes { parser.append($0) }
        let expected = ["GET", "audio/volume"].map { Reply.bulk(Array($0.utf8)) }
        #expect(try parser.next() == .array(expected))
    }
}
