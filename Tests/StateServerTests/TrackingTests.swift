import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// CLIENT TRACKING: clients that keep copies are sent which are void.
struct TrackingTests {
    private let backing = HeldBacking(isHeld: false)
    private let server: ServedKeyspace
    private let writer: Peer

    init() throws {
        server = try ServedKeyspace(backing)
        writer = try server.connect()
    }

    private func invalidated(_ reply: Reply) -> [String]? {
        guard case .push(let parts) = reply, parts.first?.textValue == "invalidate" else {
            return nil
        }
        return parts[1].elements?.compactMap(\.textValue) ?? ["everything"]
    }

    @Test(.enabled(if: TestUser.areThere))
    func `nobody redirects to connections of others, and prefixes count as globs`() throws {
        let number = try #require(try writer.ask("CLIENT ID").integerValue)
        let (first, second) = try (
            server.connect(as: TestUser.names[0]).peer, server.connect(as: TestUser.names[0]).peer
        )
        #expect(
            try first.ask("CLIENT TRACKING ON REDIRECT \(number)").errorText
                == "ERR The client ID you want redirect to does not exist"
        )
        func broadcast(_ count: Int) -> String {
            "CLIENT TRACKING ON BCAST"
                + (0..<count).map { " PREFIX p\($0)/" }.joined()
        }
        for peer in [first, second] { _ = try peer.ask("HELLO 3") }
        #expect(try first.ask(broadcast(101)).errorText?.hasPrefix("LIMIT") == true)
        #expect(try first.ask(broadcast(60)) == .simple("OK"))
        #expect(try second.ask(broadcast(60)).errorText?.hasPrefix("LIMIT") == true)
        #expect(try first.ask("CLIENT TRACKING OFF") == .simple("OK"))
        #expect(try second.ask(broadcast(60)) == .simple("OK"))
    }

    @Test(arguments: ["ON", "ON BCAST PREFIX quiet/", "ON OPTOUT"])
    func `a copy of a key that may be read and not watched is void when it changes`(
        options: String
    ) throws {
        let stage = try AccessStage(
            #"{"keys": "quiet/", "watch": ["other"]}, {"keys": "secret/", "read": ["other"]}"#
        )
        try stage.set("quiet/k", "1")
        let peer = try stage.connect()
        #expect(try peer.ask("CLIENT TRACKING \(options)") == .simple("OK"))
        #expect(try peer.ask("GET quiet/k").textValue == "1")
        try stage.set("secret/k", "1")
        try stage.set("quiet/k", "2")
        #expect(invalidated(try peer.next()) == ["quiet/k"])
        #expect(try peer.ask("GET quiet/k").textValue == "2")
    }

    @Test(arguments: [["CLIENT TRACKING OFF"], ["CLIENT TRACKING OFF", "GET b"], ["RESET"]])
    func `nothing is kept of a client whose transaction has ended its tracking`(
        ending: [String]
    ) throws {
        let other = try server.connect(3)
        #expect(try other.ask("CLIENT TRACKING ON BCAST PREFIX c") == .simple("OK"))
        let reader = try server.connect(3)
        for command in ["CLIENT TRACKING ON", "MULTI", "GET a"] + ending + ["EXEC"] {
            _ = try reader.ask(command)
        }
        reader.socket.end()
        // The server would read of a connection that is gone, and end.
        try server.waitForClients(2)
        for command in ["SET a 1", "SET b 1", "SET c 1"] {
            #expect(try writer.ask(command) == .simple("OK"))
        }
        #expect(invalidated(try other.next()) == ["c"])
    }

    @Test func `what a transaction reads before it begins tracking anew is invalidated`() throws {
        let reader = try server.connect(3)
        for command in [
            "CLIENT TRACKING ON", "MULTI", "GET a", "CLIENT TRACKING OFF", "CLIENT TRACKING ON",
            "GET b", "EXEC",
        ] { _ = try reader.ask(command) }
        for key in ["a", "b"] {
            #expect(try writer.ask("SET \(key) 1") == .simple("OK"))
            #expect(invalidated(try reader.next()) == [key])
        }
    }

    @Test func `a key that was read is invalidated once, until it is read again`() throws {
        let reader = try server.connect(3)
        #expect(try reader.ask("CLIENT TRACKING ON") == .simple("OK"))
        _ = try writer.ask("MSET a 1 b 1 c 1")
        _ = try reader.ask("MGET a b")
        _ = try writer.ask("SET a 2")
        #expect(invalidated(try reader.next()) == ["a"])
        _ = try writer.ask("SET a 3")
        _ = try writer.ask("SET c 2")
        _ = try writer.ask("EXPIRE b 0")
        #expect(invalidated(try reader.next()) == ["b"])
        _ = try reader.ask("GET a")
        _ = try writer.ask("FLUSHALL")
        #expect(invalidated(try reader.next()) == ["a"])
        #expect(try reader.ask("CLIENT TRACKING OFF") == .simple("OK"))
        _ = try reader.ask("GET a")
        _ = try writer.ask("SET a 4")
        #expect(try reader.ask("PING") == .simple("PONG"))
    }

    @Test func `an invalidation comes after the commit is durable, and before its reply`() throws {
        let reader = try server.connect(3)
        _ = try writer.ask("SET a 1")
        _ = try reader.ask("CLIENT TRACKING ON")
        _ = try reader.ask("GET a")
        backing.hold()
        try writer.send("SET a 2")
        try server.catchUp()
        #expect(try reader.arrived().isEmpty && writer.arrived().isEmpty)
        backing.open()
        #expect(invalidated(try reader.next()) == ["a"])
        #expect(try writer.next() == .simple("OK"))
    }

    @Test func `a writer that is itself sent an invalidation has no reply before those of others`()
        throws
    {
        let readers = try (0..<100).map { _ in try server.connect(3) }
        let both = try server.connect(3)
        _ = try writer.ask("MSET a 1 b 1")
        for (peer, key) in readers.map({ ($0, "a") }) + [(both, "b")] {
            _ = try peer.ask("CLIENT TRACKING ON")
            _ = try peer.ask("GET \(key)")
        }
        backing.hold()
        try writer.send("SET c 1")
        try server.catchUp()
        // Both are in the next batch.
        try writer.send("SET b 2")
        try server.catchUp()
        try both.send("SET a 2")
        try server.catchUp()
        backing.open()
        #expect(invalidated(try both.next()) == ["b"])
        #expect(try both.next() == .simple("OK"))
        #expect(try readers.allSatisfy { try !$0.arrived().isEmpty })
    }

    @Test func `what is read of a commit that is not durable is not invalidated by it`() throws {
        let reader = try server.connect(3)
        _ = try reader.ask("CLIENT TRACKING ON")
        backing.hold()
        try writer.send("SET a 1")
        try server.catchUp()
        try reader.send("GET a")
        try server.catchUp()
        backing.open()
        #expect(try reader.next().textValue == "1")
        _ = try writer.next()
        // The copy is recorded: the next change makes it void.
        _ = try writer.ask("SET a 2")
        #expect(invalidated(try reader.next()) == ["a"])
    }

    @Test func `a reply that is held and void is followed by its invalidation`() throws {
        let reader = try server.connect(3)
        _ = try reader.ask("CLIENT TRACKING ON")
        backing.hold()
        try writer.send("SET a 1")
        try server.catchUp()
        try reader.send("GET a")
        try server.catchUp()
        try writer.send("SET a 2")
        try server.catchUp()
        backing.open()
        _ = try writer.next(2)
        // However the two commits are grouped, the last word about the value 1 is that it is void.
        _ = try reader.ask("PING")
        try server.catchUp()
        var copy: String?
        for reply in try allReplies(of: reader) {
            if invalidated(reply) == ["a"] {
                copy = nil
            } else if reply != .simple("PONG") {
                copy = reply.textValue
            }
        }
        #expect(copy == nil)
    }

    private func allReplies(of reader: Peer) throws -> [Reply] {
        try reader.send("ECHO end")
        var replies: [Reply] = []
        while true {
            let reply = try reader.next()
            if reply.textValue == "end" { return replies }
            replies.append(reply)
        }
    }

    @Test func `reads of EXEC are recorded, and those that its own commit makes void are sent`()
        throws
    {
        let reader = try server.connect(3)
        _ = try writer.ask("MSET a 1 b 1")
        _ = try reader.ask("CLIENT TRACKING ON")
        for command in ["MULTI", "GET a", "SET a 2", "GET b"] { _ = try reader.ask(command) }
        try reader.send("EXEC")
        #expect(invalidated(try reader.next()) == ["a"])
        #expect(try reader.next().elements?.count == 3)
        _ = try writer.ask("SET b 2")
        // The reply was held, so the first invalidation is sent again behind it.
        #expect(invalidated(try reader.next()) == ["a"])
        #expect(invalidated(try reader.next()) == ["b"])
    }

    @Test func `BCAST sends changes of prefixes, whoever reads`() throws {
        let reader = try server.connect(3)
        #expect(
            try reader.ask("CLIENT TRACKING ON BCAST PREFIX a/ PREFIX b/ NOLOOP") == .simple("OK")
        )
        for command in ["SET a/x 1", "SET c/x 1"] { _ = try writer.ask(command) }
        #expect(invalidated(try reader.next()) == ["a/x"])
        _ = try reader.ask("SET a/x 2")
        _ = try writer.ask("MSET b/y 1 c/y 1 b/z 1")
        #expect(invalidated(try reader.next()) == ["b/y", "b/z"])
        #expect(
            try reader.ask("CLIENT TRACKING ON BCAST PREFIX a").errorText
                == "ERR Prefix 'a' overlaps with an existing prefix 'a/'. Prefixes for a single client must not overlap."
        )
        #expect(
            try reader.ask("CLIENT TRACKING ON").errorText
                == "ERR You can't switch BCAST mode before disabling tracking for this client, and then re-enabling it with a different mode."
        )
    }

    @Test(arguments: ["DEL missing", "GETEX a", "SET a 9 NX"])
    func `NOLOOP leaves out no change of others after a write that changed nothing`(
        command: String
    ) throws {
        let reader = try server.connect(3)
        _ = try writer.ask("SET a 1")
        _ = try reader.ask("CLIENT TRACKING ON NOLOOP")
        _ = try reader.ask("GET a")
        backing.hold()
        try writer.send("SET a 2")
        try server.catchUp()
        try reader.send(command)
        try server.catchUp()
        backing.open()
        _ = try writer.next()
        let replies = try allReplies(of: reader)
        #expect(replies.contains { invalidated($0) == ["a"] }, "\(replies)")
    }

    @Test func `OPTIN keeps what follows CACHING YES, OPTOUT all but what follows CACHING NO`()
        throws
    {
        let reader = try server.connect(3)
        _ = try writer.ask("MSET a 1 b 1")
        _ = try reader.ask("CLIENT TRACKING ON OPTIN")
        _ = try reader.ask("GET a")
        _ = try reader.ask("CLIENT CACHING YES")
        _ = try reader.ask("GET b")
        _ = try reader.ask("GET a")
        _ = try writer.ask("MSET a 2 b 2")
        #expect(invalidated(try reader.next()) == ["b"])
        #expect(
            try reader.ask("CLIENT CACHING NO").errorText
                == "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
        )
        _ = try reader.ask("CLIENT TRACKING OFF")
        _ = try reader.ask("CLIENT TRACKING ON OPTOUT")
        _ = try reader.ask("CLIENT CACHING NO")
        _ = try reader.ask("GET a")
        _ = try reader.ask("GET b")
        _ = try writer.ask("MSET a 2 b 2")
        #expect(invalidated(try reader.next()) == ["b"])
    }

    @Test func `a connection of RESP2 has them sent to another one`() throws {
        let listener = try server.connect()
        let number = try #require(try listener.ask("CLIENT ID").integerValue)
        _ = try listener.ask("SUBSCRIBE __redis__:invalidate")
        let reader = try server.connect()
        #expect(try reader.ask("CLIENT TRACKING ON REDIRECT \(number)") == .simple("OK"))
        #expect(try reader.ask("CLIENT GETREDIR") == .integer(number))
        _ = try reader.ask("GET a")
        _ = try writer.ask("SET a 1")
        let message = try listener.next().elements
        #expect(message?[0].textValue == "message")
        #expect(message?[1].textValue == "__redis__:invalidate")
        #expect(message?[2].elements?.map(\.textValue) == ["a"])
        #expect(
            try server.connect().ask("CLIENT TRACKING ON REDIRECT 999999").errorText
                == "ERR The client ID you want redirect to does not exist"
        )
    }

    @Test(.enabled(if: TestUser.areThere))
    func `bounded: the copies of a user with many clients take no place from others`() throws {
        let small = try ServedKeyspace(HeldBacking(isHeld: false)) { $0.trackedKeyCount = 100 }
        let reader = try small.connect(as: TestUser.names[0]).peer
        let greedy = try (0..<10).map { _ in try small.connect(as: TestUser.names[1]).peer }
        for peer in [reader] + greedy {
            _ = try peer.ask("HELLO 3")
            _ = try peer.ask("CLIENT TRACKING ON")
        }
        for number in 0..<40 { #expect(try reader.ask("GET own/\(number)").errorText == nil) }
        for (place, peer) in greedy.enumerated() {
            try peer.send((0..<100).map { Peer.words("GET \(place)/\($0)") })
        }
        for peer in greedy {
            var answered = 0
            while answered < 100 { if invalidated(try peer.next()) == nil { answered += 1 } }
        }
        try small.catchUp()
        #expect(try reader.arrived() == [])
        let info = try #require(try reader.ask("INFO stats").textValue)
        #expect(info.contains("tracking_total_items:100\r\n"), "\(info)")
        // They are still copies.
        _ = try small.connect().ask("SET own/7 1")
        #expect(invalidated(try reader.next()) == ["own/7"])
    }

    @Test func `bounded: a commit that makes very many copies void makes all of a user void`()
        throws
    {
        let readers = try (0..<25).map { _ in try server.connect(3) }
        let keys = (0..<1_000).map { "k\($0)" }
        for reader in readers {
            _ = try reader.ask("CLIENT TRACKING ON")
            _ = try reader.ask("MGET \(keys.joined(separator: " "))")
        }
        _ = try writer.ask("MSET \(keys.map { "\($0) 1" }.joined(separator: " "))")
        for reader in readers { #expect(invalidated(try reader.next()) == ["everything"]) }
        // From then on they are read anew.
        for reader in readers {
            #expect(try reader.ask("GET k1").textValue == "1")
        }
        _ = try writer.ask("SET k1 2")
        for reader in readers { #expect(invalidated(try reader.next()) == ["k1"]) }
    }

    @Test func `a full table invalidates what it forgets`() throws {
        let small = try ServedKeyspace(HeldBacking(isHeld: false)) { $0.trackedKeyCount = 10 }
        let reader = try small.connect(3)
        _ = try reader.ask("CLIENT TRACKING ON")
        var kept: Set<String> = []
        var voided = 0
        for number in 0..<50 {
            try reader.send("GET k\(number)")
            while true {
                let reply = try reader.next()
                guard let keys = invalidated(reply) else { break }
                kept.subtract(keys)
                voided += keys.count
            }
            kept.insert("k\(number)")
            for reply in try reader.arrived() {
                kept.subtract(invalidated(reply) ?? [])
                voided += 1
            }
        }
        _ = try reader.ask("PING")
        let info = try #require(try reader.ask("INFO stats").textValue)
        #expect(info.contains("tracking_total_items:10\r\n"), "\(info)")
        #expect(voided >= 39)
    }

    @Test(arguments: Seed.each(2))
    func `random reads and writes leave no stale copy`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let readers = try (0..<3).map { _ in try server.connect(3) }
        var copies = [[String: String]](repeating: [:], count: 3)
        for reader in readers { _ = try reader.ask("CLIENT TRACKING ON") }
        var values: [String: String] = [:]
        func take(_ reply: Reply, _ index: Int) -> Bool {
            guard let keys = invalidated(reply) else { return false }
            for key in keys { copies[index][key] = nil }
            return true
        }
        for turn in 0..<Extent.rounds(3_000) {
            let key = "k\(Int.random(in: 0..<8, using: &random))"
            let index = Int.random(in: 0..<3, using: &random)
            if Bool.random(using: &random) {
                values[key] = "\(turn)"
                #expect(try writer.ask("SET \(key) \(turn)") == .simple("OK"))
                continue
            }
            // What was sent before the reply to the write is here.
            for reply in try readers[index].arrived() { _ = take(reply, index) }
            if let copy = copies[index][key] {
                #expect(copy == values[key], "\(key) in turn \(turn)")
                continue
            }
            let reply = try readers[index].ask("GET \(key)")
            copies[index][key] = reply.textValue
            #expect(reply.textValue == values[key])
        }
    }
}
