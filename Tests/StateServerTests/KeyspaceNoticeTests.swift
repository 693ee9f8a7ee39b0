import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What ordinary clients of Redis are told of the keys that others change.
struct KeyspaceNoticeTests {
    private let backing = HeldBacking(isHeld: false)
    private let server: ServedKeyspace
    private let peer: Peer
    private let writer: Peer

    init() throws {
        server = try ServedKeyspace(backing)
        peer = try server.connect()
        writer = try server.connect()
    }

    /// The channel and the payload of each message.
    private func notices(_ count: Int, of peer: Peer? = nil) throws -> [String] {
        try (peer ?? self.peer).next(count).map { reply in
            let texts = (reply.elements ?? []).compactMap(\.textValue)
            return texts.suffix(2).joined(separator: " ")
        }
    }

    @Test func `each change is told by key and by operation, a commit's in its order`() throws {
        _ = try peer.ask("PSUBSCRIBE __key*__:*")
        try writer.expect(
            """
            > MSET a 1 b/c 2
            > SET a 3
            > INCR a
            > DEL a b/c missing
            > STATE.APPLY 2 SET x 1 SET y 2
            > STATE.DELETE /
            > GET a
            +OK
            +OK
            4
            2
            ["revision", 5, "count", 2]
            ["revision", 6, "count", 2]
            (nil)
            """
        )
        #expect(
            try notices(20) == [
                "__keyspace@0__:a set", "__keyevent@0__:set a",
                "__keyspace@0__:b/c set", "__keyevent@0__:set b/c",
                "__keyspace@0__:a set", "__keyevent@0__:set a",
                "__keyspace@0__:a incrby", "__keyevent@0__:incrby a",
                "__keyspace@0__:a del", "__keyevent@0__:del a",
                "__keyspace@0__:b/c del", "__keyevent@0__:del b/c",
                "__keyspace@0__:x set", "__keyevent@0__:set x",
                "__keyspace@0__:y set", "__keyevent@0__:set y",
                "__keyspace@0__:x del", "__keyevent@0__:del x",
                "__keyspace@0__:y del", "__keyevent@0__:del y",
            ]
        )
        try server.catchUp()
        #expect(try peer.arrived() == [])
    }

    private static let keys = [
        "a", "a/b", "a/b/c", "ab", "ab/c", "b", "set", "del", "*", "a[b", "x y", "__keyspace@0__:a",
    ]

    private static let ofKeys: [String] = keys.map { key in "__keyspace@0__:" + key }
    private static let ofBoth: [String] = ofKeys.flatMap { name in [name, "__keyevent@0__:set"] }

    /// A subscription, and the channels in which it tells of a `set` of each of the keys.
    private static let subscriptions: [(String, [String])] = [
        ("SUBSCRIBE __keyspace@0__:a/b", ["__keyspace@0__:a/b"]),
        ("SUBSCRIBE __keyspace@0__:*", ["__keyspace@0__:*"]),
        ("SUBSCRIBE __keyspace@0__:a[b", ["__keyspace@0__:a[b"]),
        ("SUBSCRIBE __keyspace@0__: __keyspace@0__:a/ __keyspace@1__:a a", []),
        ("SUBSCRIBE __keyspace@0__:__keyspace@0__:a", ["__keyspace@0__:__keyspace@0__:a"]),
        ("SUBSCRIBE __keyevent@0__:set", Array(repeating: "__keyevent@0__:set", count: keys.count)),
        ("SUBSCRIBE __keyevent@0__:del __keyevent@0__:expired", []),
        ("PSUBSCRIBE __keyspace@0__:a", ["__keyspace@0__:a"]),
        ("PSUBSCRIBE __keyspace@0__:a/*", ["__keyspace@0__:a/b", "__keyspace@0__:a/b/c"]),
        (
            "PSUBSCRIBE __keyspace@0__:ab*",
            ["__keyspace@0__:ab", "__keyspace@0__:ab/c"]
        ),
        ("PSUBSCRIBE __keyspace@0__:*/c", ["__keyspace@0__:a/b/c", "__keyspace@0__:ab/c"]),
        (
            "PSUBSCRIBE __keyspace@0__:?",
            ["__keyspace@0__:a", "__keyspace@0__:b", "__keyspace@0__:*"]
        ),
        ("PSUBSCRIBE __keyspace@0__:\\*", ["__keyspace@0__:*"]),
        ("PSUBSCRIBE __keyspace@0__:x?y", ["__keyspace@0__:x y"]),
        ("PSUBSCRIBE \\__keyspace@0__:b*", ["__keyspace@0__:b"]),
        ("PSUBSCRIBE __keyspace@?__:a/b", ["__keyspace@0__:a/b"]),
        ("PSUBSCRIBE __keyspace@[0]__:b", ["__keyspace@0__:b"]),
        ("PSUBSCRIBE *@0__:b", ["__keyspace@0__:b"]),
        ("PSUBSCRIBE __keyspace@0__:*", ofKeys),
        ("PSUBSCRIBE __keyevent@0__:*", Array(repeating: "__keyevent@0__:set", count: keys.count)),
        ("PSUBSCRIBE __keyevent@0__:d* __keyevent@0__:exp* foo* __keyspace@1__:*", []),
        ("PSUBSCRIBE *", ofBoth),
    ]

    @Test(arguments: subscriptions)
    func `a subscription tells of the keys that its channels are of`(
        subscription: String,
        channels: [String]
    ) throws {
        let count = Peer.words(subscription).count - 1
        try peer.send(subscription)
        _ = try peer.next(count)
        for key in Self.keys { _ = try writer.ask("SET \"\(key)\" 1") }
        try server.catchUp()
        let told = try peer.arrived().compactMap { reply in
            let texts = (reply.elements ?? []).compactMap(\.textValue)
            return texts.dropLast().last
        }
        #expect(told == channels)
        // What can tell of nothing costs a write nothing, and what has ended.
        let followsKeys = !channels.isEmpty || subscription.contains("__keyevent@0__:d")
        if !followsKeys { #expect(server.keyspace.withCore { $0.hub.count } == 0) }
        _ = try peer.ask("RESET")
        #expect(server.keyspace.withCore { $0.hub.count } == 0)
    }

    @Test func `several subscriptions to a key are told each, and end each for itself`() throws {
        let other = try server.connect(3)
        try other.send("SUBSCRIBE __keyspace@0__:a/k", "PSUBSCRIBE __keyspace@0__:a/*")
        try peer.send("SUBSCRIBE __keyspace@0__:a/k")
        _ = try (other.next(2), peer.next())
        _ = try writer.ask("SET a/k 1")
        #expect(try notices(2, of: other) == ["__keyspace@0__:a/k set", "__keyspace@0__:a/k set"])
        #expect(try notices(1) == ["__keyspace@0__:a/k set"])
        _ = try other.ask("UNSUBSCRIBE")
        _ = try writer.ask("DEL a/k")
        #expect(try other.next().elements?[0].textValue == "pmessage")
        #expect(try notices(1) == ["__keyspace@0__:a/k del"])
        _ = try other.ask("PUNSUBSCRIBE")
        _ = try writer.ask("SET a/k 1")
        #expect(try notices(1) == ["__keyspace@0__:a/k set"])
        #expect(
            try writer.ask("STATE.STATUS").elements?.contains(.bulk(Array("watches".utf8))) == true
        )
        #expect(try other.ask("STATE.STATUS")["watches"] == .integer(0))
        _ = try peer.ask("UNSUBSCRIBE")
        #expect(server.keyspace.withCore { $0.hub.count } == 0)
        #expect(try other.arrived() == [])
    }

    @Test func `PUBLISH to a channel of a key is a message like any other`() throws {
        _ = try peer.ask("SUBSCRIBE __keyspace@0__:a")
        #expect(try writer.ask("PUBLISH __keyspace@0__:a hello") == .integer(1))
        #expect(try notices(1) == ["__keyspace@0__:a hello"])
    }

    // MARK: When

    @Test func `durable before told, by notices`() throws {
        _ = try peer.ask("PSUBSCRIBE __key*__:*")
        backing.hold()
        try writer.send("SET k new")
        #expect(backing.held() != nil)
        try server.catchUp()
        #expect(try peer.arrived() == [])
        backing.release()
        #expect(try writer.next() == .simple("OK"))
        // The notices left before the reply did.
        #expect(try peer.arrived().count == 2)
    }

    @Test func `nobody is told of a commit that failed`() throws {
        try peer.send("PSUBSCRIBE __key*__:*", "SUBSCRIBE __keyspace@0__:k")
        _ = try peer.next(2)
        backing.hold()
        try writer.send("SET k 1", "DEL k")
        #expect(backing.held() != nil)
        // Meanwhile others subscribe, who are told of it no more than those before.
        let late = try server.connect()
        _ = try late.ask("PSUBSCRIBE *")
        backing.fail(StateError(.noSpace, "the disk is full"))
        #expect(try writer.next(2).allSatisfy { $0.errorText != nil })
        backing.open()
        #expect(try writer.ask("SET l 1") == .simple("OK"))
        #expect(try notices(2) == ["__keyspace@0__:l set", "__keyevent@0__:set l"])
        #expect(try notices(2, of: late) == ["__keyspace@0__:l set", "__keyevent@0__:set l"])
        try server.catchUp()
        #expect(try peer.arrived() == [])
    }

    @Test func `who subscribes while a commit is under way is told of it`() throws {
        backing.hold()
        try writer.send("SET k 1")
        #expect(backing.held() != nil)
        _ = try peer.ask("SUBSCRIBE __keyspace@0__:k")
        backing.open()
        #expect(try notices(1) == ["__keyspace@0__:k set"])
    }

    @Test func `a writer is told of its own change before it is answered`() throws {
        let own = try server.connect(3)
        _ = try own.ask("PSUBSCRIBE __keyspace@0__:*")
        backing.hold()
        try own.send("SET a 1", "PING", "SET b 2", "GET a")
        #expect(backing.held() != nil)
        try server.catchUp()
        #expect(try own.arrived() == [])
        backing.open()
        let told = try own.next(6).map(\.shown)
        let place = { (text: String) in told.firstIndex { $0.contains(text) } ?? -1 }
        #expect(place("@0__:a") == 0)
        #expect(place("+OK") < place("+PONG"))
        let answer = told.lastIndex(of: "+OK") ?? -1
        #expect(place("@0__:b") > 0 && place("@0__:b") < answer)
        #expect(told.last == #""1""#)
    }

    @Test func `ordered, by notices of 4 writers`() throws {
        let watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH /")
        _ = try peer.ask("PSUBSCRIBE __keyspace@0__:*")
        let writers = try (0..<4).map { _ in try server.connect() }
        let count = Extent.rounds(500)
        for (number, writer) in writers.enumerated() {
            try writer.send(
                (0..<count).map {
                    Peer.words($0 % 3 == 2 ? "DEL k\(number)" : "SET k\(number) \($0)")
                }
            )
        }
        for writer in writers { _ = try writer.next(count) }
        // One key a commit: the keys of the notices are those of the watch, in its order.
        let expected = try watcher.next(4 * count).map { push -> String in
            let change = try #require(push.elements?[3].elements?.first?.elements)
            return
                "__keyspace@0__:\(change[0].textValue ?? "") \(change[1] == .null ? "del" : "set")"
        }
        #expect(try notices(4 * count) == expected)
    }

    @Test(arguments: Seed.each(4))
    func `random patterns tell what a comparison of each with each tells`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        let start = "__keyspace@0__:"
        var patterns: Set<String> = []
        for _ in 0..<Extent.rounds(300) {
            if random.chance(40) {
                let pattern = start + RandomName.glob(&random)
                let isNew = patterns.insert(pattern).inserted
                if !isNew { patterns.remove(pattern) }
                _ = try peer.ask("P\(isNew ? "" : "UN")SUBSCRIBE \(pattern)")
                continue
            }
            var key = RandomName.plain(&random)
            if key.hasSuffix("/") { key += "a" }
            _ = try writer.ask("SET \(key) 1")
            let expected = patterns.filter { RandomName.matches($0, start + key) }
                .map { #"["pmessage", "\#($0)", "\#(start + key)", "set"]"# }
            let told = try peer.next(expected.count).map(\.shown)
            try #require(told.sorted() == expected.sorted())
        }
        try server.catchUp()
        #expect(try peer.arrived() == [])
    }
}
