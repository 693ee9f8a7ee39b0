import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What the subscriptions of one user cost delays only the messages of that user.
struct SubscriptionCostTests {
    /// As many different bytes as possible, so that classes take long.
    private static let name =
        "c"
        + String(decoding: (0..<2_000).map { UInt8(ascii: "(") + UInt8($0 % 52) }, as: UTF8.self)
    /// Globs that do not match it: so many take more steps than a user has at once.
    private static let globs = (0..<60).map { number in
        "c*" + String(repeating: "[^]", count: 655) + "\u{1}\(number)*"
    }

    /// A server, and a reader of these globs and others.
    private func serve(
        _ others: String = "",
        _ adjust: (inout ServerOptions) -> Void = { _ in }
    ) throws -> (ServedKeyspace, UserClient) {
        let server = try ServedKeyspace {
            $0.globCount = 2_000
            adjust(&$0)
        }
        let reader = try server.connect(as: TestUser.names[0])
        let patterns = Self.globs + Peer.words(others).map { String(decoding: $0, as: UTF8.self) }
        try reader.peer.send("PSUBSCRIBE \(patterns.joined(separator: " "))")
        _ = try reader.peer.next(patterns.count)
        return (server, reader)
    }

    private func payloads(_ count: Int, of peer: Peer) throws -> [String?] {
        try peer.next(count).map { $0.elements?.last?.textValue }
    }

    // MARK: Globs

    @Test(.enabled(if: TestUser.areThere))
    func `a sender does not wait for the globs of a user, who gets each message late, in order`()
        throws
    {
        let (server, client) = try serve("c*")
        let reader = client.peer
        let (sender, other) = try (server.connect(), server.connect())
        _ = try other.ask("SUBSCRIBE \(Self.name)")
        // The time for globs is over before the last one, which would match.
        #expect(try sender.ask("PUBLISH \(Self.name) 1") == .integer(1))
        #expect(try other.next().elements?.last?.textValue == "1")
        // Those that are found at once do not overtake it.
        try sender.send((2...20).map { Peer.words("PUBLISH c\($0) \($0)") })
        _ = try sender.next(19)
        #expect(try payloads(20, of: reader) == (1...20).map(String.init))
        // A user without debts is counted.
        try server.waitUntil("a full allowance") {
            try sender.ask("PUBLISH c 21") == .integer(1)
        }
        #expect(try reader.next().elements?.last?.textValue == "21")
    }

    @Test(.enabled(if: TestUser.areThere))
    func `who has more messages waiting than the limit is let go, and nobody else`() throws {
        let (server, reader) = try serve { $0.outputByteCount = 1 << 20 }
        let (sender, other) = try (server.connect(), server.connect())
        _ = try other.ask("SUBSCRIBE other")
        // At once: comparing one of them takes longer than sending several.
        try sendMany(40, of: 200_000, by: sender)
        #expect(try reader.peer.rest() == [])
        let line = try #require(server.log.current.first { $0.contains("was disconnected") })
        #expect(line.contains("its user's subscriptions take too long"))
        #expect(try sender.ask("PUBSUB NUMPAT") == .integer(0))
        #expect(try sender.ask("PUBLISH other 1") == .integer(1))
    }

    private func sendMany(_ count: Int, of byteCount: Int, by sender: Peer) throws {
        let payload = String(repeating: "v", count: byteCount)
        try sender.send((0..<count).map { Peer.words("PUBLISH \(Self.name) \($0)\(payload)") })
        #expect(try sender.next(count) == Array(repeating: .integer(0), count: count))
    }

    @Test(.enabled(if: TestUser.areThere))
    func `messages that wait count as memory of the user whose subscriptions take long`() throws {
        let (server, reader) = try serve {
            $0.memoryByteCount = 16 << 20
            $0.outputByteCount = 64 << 20
        }
        let sender = try server.connect()
        try sendMany(400, of: 100_000, by: sender)
        #expect(try reader.peer.rest() == [])
        #expect(try sender.ask("PUBSUB NUMPAT") == .integer(0))
    }

    @Test(.enabled(if: TestUser.areThere))
    func `messages of EXEC count as memory until they are delivered`() throws {
        let (server, reader) = try serve { $0.outputByteCount = 64 << 20 }
        let (sender, other) = try (server.connect(), server.connect())
        let payload = String(repeating: "v", count: 100_000)
        try sender.send(
            [Peer.words("MULTI")]
                + (0..<300).map { Peer.words("PUBLISH \(Self.name) \($0)\(payload)") }
                + [Peer.words("EXEC")]
        )
        _ = try sender.next(302)
        func memory() throws -> Int64 {
            try #require(try other.ask("STATE.STATUS")["client_memory"]?.integerValue)
        }
        #expect(try memory() > 25_000_000)
        // What waits for nobody any more takes little time.
        reader.peer.socket.end()
        sender.socket.end()
        try server.waitUntil("the end of the messages") { try memory() < 1_000_000 }
    }

    // MARK: Patterns

    @Test(.enabled(if: TestUser.areThere))
    func `patterns of all subscriptions of a user are bounded, and a refusal changes nothing`()
        throws
    {
        let server = try ServedKeyspace { $0.watchCount = 10 }
        let user = try server.connect(as: TestUser.names[0])
        let other = try server.connect(as: TestUser.names[0]).peer
        func patterns(_ range: Range<Int>) -> String {
            range.map { "p\($0)" }.joined(separator: " ")
        }
        try user.peer.send("PSUBSCRIBE \(patterns(0..<60))")
        _ = try user.peer.next(60)
        #expect(
            try other.ask("PSUBSCRIBE \(patterns(60..<101))").errorText
                == "LIMIT uid \(user.uid) would have 101 patterns in watches and subscriptions of all "
                + "its clients; the limit is 100 (ten times limits.watches); use prefixes instead of "
                + "many keys"
        )
        try other.send("PSUBSCRIBE \(patterns(60..<100))")
        #expect(try other.next(40).allSatisfy { $0.errorText == nil })
        try user.peer.send("PUNSUBSCRIBE p0", "PSUBSCRIBE q")
        #expect(try user.peer.next(2).last?.shown == #"["psubscribe", "q", 60]"#)
    }

    /// Different spellings of one pattern.
    private func spellings(_ range: Range<Int>, of name: String = "abcdefghijklmnop") -> [String] {
        range.map { number in
            name.enumerated().map { number >> $0 & 1 == 1 ? "\\\($1)" : "\($1)" }.joined()
        }
    }

    @Test func `many spellings of a pattern are begun and ended as fast as many patterns`() throws {
        let server = try ServedKeyspace()
        func time(_ patterns: [String]) throws -> Duration {
            let peers = try (0..<5).map { _ in try server.connect() }
            return try ContinuousClock().measure {
                for (index, peer) in peers.enumerated() {
                    let own = patterns[1_000 * index..<1_000 * (index + 1)]
                    try peer.send("PSUBSCRIBE \(own.joined(separator: " "))")
                    _ = try peer.next(1_000)
                }
                for peer in peers {
                    try peer.send("PUNSUBSCRIBE")
                    _ = try peer.next(1_000)
                }
            }
        }
        let different = try time((0..<5_000).map { "abcdefghijklmnop\($0)" })
        #expect(try time(spellings(0..<5_000)) < different * 5)
    }

    @Test func `a message to many subscriptions is counted at once and delivered in order`() throws
    {
        let server = try ServedKeyspace()
        let readers = try (0..<40).map { _ in try server.connect() }
        for reader in readers {
            try reader.send("PSUBSCRIBE \(spellings(0..<500).joined(separator: " "))")
            _ = try reader.next(500)
        }
        let sender = try server.connect()
        #expect(try sender.ask("PUBLISH abcdefghijklmnop 1") == .integer(20_000))
        var arrived = try readers.map { try $0.arrived() }
        #expect(try sender.ask("PUBLISH abcdefghijklmnop 2") == .integer(20_000))
        for (index, reader) in readers.enumerated() {
            while arrived[index].count < 1_000 { arrived[index].append(try reader.next()) }
            let texts = arrived[index].map { $0.elements?.last?.textValue }
            #expect(
                texts == Array(repeating: "1", count: 500) + Array(repeating: "2", count: 500)
            )
        }
    }

    // MARK: Late messages

    /// A reader with notices that wait.
    private func late(_ server: ServedKeyspace, _ writer: Peer) throws -> Peer {
        let reader = try server.connect(3)
        try reader.send("PSUBSCRIBE __keyspace@0__:*")
        _ = try reader.next()
        let pairs = (0..<20_000).map { "old\($0) 1" }.joined(separator: " ")
        #expect(try writer.ask("MSET \(pairs)") == .simple("OK"))
        return reader
    }

    @Test func `a new subscription gets no message that was sent before it`() throws {
        let server = try ServedKeyspace { $0.outputByteCount = 64 << 20 }
        let writer = try server.connect()
        let reader = try late(server, writer)
        try reader.send("PUNSUBSCRIBE", "PSUBSCRIBE __keyspace@0__:*", "PING")
        var count = 0
        while try reader.next().elements?[0].textValue == "pmessage" { count += 1 }
        #expect(count < 20_000)
        #expect(try reader.next(2).last == .simple("PONG"))
        #expect(try writer.ask("SET new 1") == .simple("OK"))
        #expect(try reader.next().elements?[2].textValue == "__keyspace@0__:new")
    }

    @Test func `a transaction that is undone costs its subscriptions no message`() throws {
        let server = try ServedKeyspace { $0.outputByteCount = 64 << 20 }
        let writer = try server.connect()
        _ = try writer.ask("SET text x")
        let reader = try late(server, writer)
        try reader.send(
            "MULTI",
            "PUNSUBSCRIBE",
            "PSUBSCRIBE __keyspace@0__:*",
            "PUNSUBSCRIBE",
            "INCR text",
            "EXEC"
        )
        var names: [String] = []
        var errors: [String] = []
        while names.count < 20_000 {
            let reply = try reader.next()
            if let error = reply.errorText { errors.append(error) }
            guard reply.pushKind == "pmessage" else { continue }
            names.append(reply.elements?[2].textValue ?? "")
        }
        #expect(names == (0..<20_000).map { "__keyspace@0__:old\($0)" })
        #expect(errors.count == 1 && errors[0].hasPrefix("EXECABORT"))
    }
}
