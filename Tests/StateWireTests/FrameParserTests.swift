import StateEngine
import StateTestSupport
import StateWire
import Testing

struct FrameParserTests {
    private static let small = {
        var limits = FrameParser.Limits()
        limits.argumentByteCount = 64
        limits.argumentCount = 16
        limits.commandByteCount = 1_000
        limits.inlineByteCount = 128
        return limits
    }()

    @Test(arguments: 1...8) func `a frame cut anywhere still parses`(chunkLength: Int) {
        let stream =
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\na\r\n*1\r\n$1\r\nb\r\n*0\r\n\r\nping  x\r\n*1\r\n$0\r\n\r\nPING\n"
        #expect(
            cut(stream, chunkLength: chunkLength) == [
                command("SET", "k", "a\r\n*1\r\n$1\r\nb"), command("ping", "x"), command(""),
                command("PING"),
            ]
        )
    }

    @Test(
        arguments: [
            ("*1\r\n$5\r\nHELLO\r\n*", [command("HELLO")]), ("*1\r\n$4\r\nPIN", []), ("*2\r", []),
            ("*0\r\n*0\r\n", []), ("\r\n\n  \r\n", []), ("PING", []),
            ("*x", [.failed(.invalidArrayLength)]),
            ("*1\r\r", [.failed(.invalidArrayLength)]), ("*\r\n", [.failed(.invalidArrayLength)]),
            ("*1048577\r\n", [.failed(.invalidArrayLength)]), ("*1048576\r\n", []),
            ("*1234567890123456789", [.failed(.invalidArrayLength)]),
            ("*1\r\n$-1\r\n", [.failed(.invalidBulkLength)]),
            ("*1\r\n$536870913\r\n", [.failed(.invalidBulkLength)]),
            ("*1\r\n:1\r\n", [.failed(.expectedBulk(UInt8(ascii: ":")))]),
            ("*1\r\n*1\r\n", [.failed(.expectedBulk(UInt8(ascii: "*")))]),
            ("*1\r\n$1\r\nab\r\n", [.failed(.expectedLineEnd)]),
            ("*1\r\n$1\r\na\n\r", [.failed(.expectedLineEnd)]),
        ] as [(String, [Found])]
    )
    func `lengths that are none end the stream, and what is not whole waits`(
        stream: String,
        expected: [Found]
    ) {
        #expect(cut(stream) == expected)
        #expect(cut(stream, chunkLength: 1) == expected)
    }

    @Test(arguments: [1, 2, 7, 1_000])
    func `what is beyond a limit is passed over or ends the stream`(
        chunkLength: Int
    ) {
        func bulk(_ count: Int) -> String {
            "$\(count)\r\n\(String(repeating: "v", count: count))\r\n"
        }
        var limits = FrameParserTests.small
        limits.commandByteCount = 256
        let tooBig = Found.refused(.tooBig(byteCount: 65, limit: 64))
        let passed =
            "*3\r\n\(bulk(1))\(bulk(65))\(bulk(2))*1\r\n\(bulk(65))*2\r\n\(bulk(65))\(bulk(300))PING\r\n"
        #expect(
            cut(Array(passed.utf8), chunkLength: chunkLength, limits: limits)
                == [tooBig, tooBig, tooBig, command("PING")]
        )
        let long = "*1\r\n$4\r\nPING\r\n*6\r\n" + String(repeating: bulk(60), count: 6)
        #expect(
            cut(Array(long.utf8), chunkLength: chunkLength, limits: limits)
                == [command("PING"), .failed(.commandTooLong(limit: 256))]
        )
        let line = String(repeating: "x", count: 126)
        #expect(
            cut(Array((line + "\r\n").utf8), chunkLength: chunkLength, limits: limits)
                == [command(line)]
        )
        #expect(
            cut(Array((line + "yz\r\n").utf8), chunkLength: chunkLength, limits: limits)
                == [.failed(.inlineTooLong(limit: 128))]
        )
        let broken = "*2\r\n\(bulk(65))*1\r\n"
        #expect(
            cut(Array(broken.utf8), chunkLength: chunkLength, limits: limits)
                == [.failed(.expectedBulk(UInt8(ascii: "*")))]
        )
    }

    @Test func `a frame that is not whole says how many bytes it needs`() {
        var parser = FrameParser(limits: FrameParser.Limits())
        let frame = Array("*2\r\n$4\r\nECHO\r\n$1000\r\nabc".utf8)
        frame.withUnsafeBytes { bytes in
            guard case .more = try? parser.next(bytes) else {
                Issue.record("it is whole")
                return
            }
        }
        #expect(parser.expectedByteCount == "*2\r\n$4\r\nECHO\r\n$1000\r\n\r\n".utf8.count + 1_000)
    }

    // MARK: Inline

    @Test(
        arguments: [
            ("  set  k\tv \r\n", command("set", "k", "v")),
            (#"SET "a b" 'c d'"#, command("SET", "a b", "c d")),
            (#"ECHO "\x41\n\r\t\b\a\"\\\q""#, command("ECHO", "A\n\r\t\u{8}\u{7}\"\\q")),
            (#"ECHO "\x4" "\xZZ""#, command("ECHO", "x4", "xZZ")),
            (#"ECHO 'it\'s' '\n\x41'"#, command("ECHO", "it's", #"\n\x41"#)),
            (#"ECHO """#, command("ECHO", "")), (#"ECHO ''"#, command("ECHO", "")),
            (#"pre"fix d""#, command("prefix d")), (#"a\nb"#, command(#"a\nb"#)),
            (#"ECHO "open"#, .failed(.unbalancedQuotes)),
            (#"ECHO 'open"#, .failed(.unbalancedQuotes)),
            (#"ECHO "a"b"#, .failed(.unbalancedQuotes)),
            (#"ECHO 'a'b"#, .failed(.unbalancedQuotes)),
            (#"ECHO "a\"#, .failed(.unbalancedQuotes)), ("$5 *1", command("$5", "*1")),
        ] as [(String, Found)]
    )
    func `inline commands are split as Redis splits them`(line: String, expected: Found) {
        #expect(cut(line + "\n") == [expected])
        #expect(cut(line + "\r\n", chunkLength: 1) == [expected])
    }

    @Test func `an empty word alone is a command without a name`() {
        #expect(cut("\"\"\r\n") == [command("")])
    }

    // MARK: At random

    /// A stream and what it means.
    private func randomStream(_ random: inout SplitMix) -> (bytes: [UInt8], meaning: [Found]) {
        var stream = RequestWriter()
        var bytes: [UInt8] = []
        var meaning: [Found] = []
        let limit = FrameParserTests.small.argumentByteCount
        for _ in 0..<Int.random(in: 0...8, using: &random) {
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes += Array((random.chance(50) ? "*0\r\n" : "  \r\n").utf8)
            case 1:
                let words = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                    String(random.next(), radix: 36)
                }
                bytes += Array((words.joined(separator: " ") + "\n").utf8)
                meaning.append(.command(words.map { Array($0.utf8) }))
            default:
                let longest = random.chance(10) ? limit + 3 : 20
                let arguments = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                    random.bytes(Int.random(in: 0...longest, using: &random))
                }
                stream.removeAll()
                stream.append(arguments)
                bytes += stream.bytes
                let tooBig = arguments.first { $0.count > limit }
                meaning.append(
                    tooBig.map { .refused(.tooBig(byteCount: $0.count, limit: limit)) }
                        ?? .command(arguments)
                )
            }
        }
        return (bytes, meaning)
    }

    @Test(arguments: Seed.each(4))
    func `random commands come out as they went in, however they are cut`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        for _ in 0..<Extent.rounds(5_000) {
            let (bytes, meaning) = randomStream(&random)
            let chunkLength = Int.random(in: 1...40, using: &random)
            let found = cut(bytes, chunkLength: chunkLength, limits: FrameParserTests.small)
            guard found != meaning else { continue }
            Issue.record("\(bytes) in chunks of \(chunkLength) is \(found), not \(meaning)")
            return
        }
    }

    @Test(arguments: Seed.each(4))
    func `50,000 spoilt streams never trap, and mean the same however they are cut`(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let alphabet = Array("*$\r\n0123456789-\"'\\x a".utf8)
        for _ in 0..<Extent.rounds(50_000) {
            var (bytes, _) = randomStream(&random)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0...bytes.count, using: &random)
                let byte = alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                switch Int.random(in: 0..<4, using: &random) {
                case 0 where place < bytes.count: bytes[place] = byte
                case 1 where place < bytes.count: bytes.remove(at: place)
                case 2: bytes.removeSubrange(place...)
                default: bytes.insert(byte, at: place)
                }
            }
            let whole = cut(bytes, chunkLength: max(1, bytes.count), limits: FrameParserTests.small)
            let chunkLength = Int.random(in: 1...12, using: &random)
            let pieces = cut(bytes, chunkLength: chunkLength, limits: FrameParserTests.small)
            guard whole != pieces else { continue }
            Issue.record("\(bytes) is \(whole), but in chunks of \(chunkLength) \(pieces)")
            return
        }
    }

    @Test func `looking ahead finds the keys of whole commands, and refuses nothing`() {
        let parts = [
            "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "*1\r\n$4\r\nPING\r\n",
            "*3\r\n$3\r\nSET\r\n$12\r\nlonger/key/b\r\n$0\r\n\r\n",
        ]
        let ends = parts.indices.map { parts[...$0].joined().utf8.count }
        let commands = parts.joined()
        #expect(keys(of: commands) == ["a", "", "longer/key/b"])
        #expect(keys(of: commands, limit: 2) == ["a", ""])
        let bytes = Array(commands.utf8)
        for count in bytes.indices {
            let whole = ends.count { $0 <= count }
            let start = String(decoding: bytes[..<count], as: UTF8.self)
            #expect(keys(of: start) == Array(["a", "", "longer/key/b"][..<whole]), "\(count)")
        }
        let others = [
            "*x", "*-1\r\n", "*0\r\n", "*99999\r\n", "PING\r\n", "*1\r\n$-1\r\n",
            "*2\r\n$1\r\na\r\n:1\r\n",
            "*2\r\n$1\r\na\r\n$536870913\r\n", "*1\r\n$99999999999999999\r\n", "\r\n",
        ]
        for other in others {
            #expect(keys(of: other).isEmpty, "\(other)")
            #expect(keys(of: commands + other + commands).count == 3, "\(other)")
        }
    }

    private func keys(of stream: String, limit: Int = 16) -> [String] {
        let bytes = Array(stream.utf8)
        let parser = FrameParser(limits: FrameParser.Limits())
        return bytes.withUnsafeBytes { bytes in
            withUnsafeTemporaryAllocation(of: Bytes.self, capacity: limit) { keys in
                let next = parser.lookAhead(bytes, keys)
                return keys[..<next.count].map { String(decoding: $0, as: UTF8.self) }
            }
        }
    }
}
