import Glibc
import StateEngine
import StateRules
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What watches, changes and channels tell of keys that a rule keeps somebody from.
struct AccessWatchTests {
    private let stage: AccessStage
    private let me = geteuid()

    init() throws {
        stage = try AccessStage(
            """
            {"keys": "secret/", "read": ["other"], "write": ["other"]},
            {"keys": "own/", "read": ["owner"]},
            {"keys": "quiet/", "watch": ["other"]}
            """
        )
        try stage.change([("free", "f1"), ("own/k", "o1"), ("quiet/k", "q1"), ("secret/k", "s1")])
    }

    private func ask(_ peer: Peer, _ command: String) throws {
        let reply = try peer.ask(command)
        try #require(reply.errorText == nil, "\(command): \(reply.shown)")
    }

    /// Two commits of which something is to be seen, and two of which nothing is.
    private func changeAll() throws {
        try stage.change([("secret/k", "s2"), ("free", "f2"), ("quiet/k", "q2")])
        try stage.change([("secret/k", "s3")])
        try stage.change([("own/k", nil), ("secret/new", "s4")])
        try stage.change([("free", nil), ("own/k", "o2")])
    }

    @Test func `commits tell what may be seen, and those of which nothing is left are not told`()
        throws
    {
        let peer = try stage.connect()
        try ask(peer, "STATE.WATCH / secret* PREVIOUS")
        let before = stage.revision
        try changeAll()
        let pushes = try peer.next(2).map(\.shown)
        #expect(
            pushes == [
                "push[\"state.change\", 1, \(before + 1), [[\"free\", \"f2\", \"f1\"]]]",
                "push[\"state.change\", 1, \(before + 4), [[\"free\", (nil), \"f2\"]]]",
            ]
        )
        #expect(try peer.ask("PING").shown == "+PONG")
    }

    @Test func `nobody learns what rules hide: full messages tell of no hidden key`() throws {
        let stage = try AccessStage(
            #"{"keys": "secret/", "read": ["other"]}"#
        ) { $0.outputByteCount = 16 << 10 }
        let (peer, writer) = try (stage.connect(), stage.connect())
        let globs = (0..<90).map { "__keyspace@0__:a*a*a*b\($0)" }.joined(separator: " ")
        try peer.send("PSUBSCRIBE __keyspace@0__:last __keyspace@0__:secret/* \(globs)")
        _ = try peer.next(92)
        let head = String(repeating: "a", count: 900)
        let keys = (0..<200).map { "\(head)\($0) 1" }.joined(separator: " ")
        // More waits now than a user may have when something else comes.
        try ask(writer, "MSET \(keys) last 1")
        try stage.change([("secret/k", "s2")])
        #expect(try peer.next().elements?[2].textValue == "__keyspace@0__:last")
        #expect(try peer.ask("PING").shown == "+PONG")
    }

    @Test func `what is hidden takes no steps from the globs of those who may not see it`() throws {
        let stage = try AccessStage(
            #"{"keys": "secret/", "read": ["other"]}"#
        ) { $0.progressMilliseconds = 600_000 }
        let peer = try stage.connect()
        for number in 0..<100 { try ask(peer, "STATE.WATCH *a*b\(number)") }
        let head = String(repeating: "a", count: 900)
        // Were they visible, the watches would have no steps left, and get a bookmark once they are
        // back from the history.
        try stage.change((0..<300).map { ("secret/\($0)\(head)b7", "1") })
        try stage.set("seen/ab7", "1")
        try stage.set("seen/ab7", "2")
        let pushes = try peer.next(2)
        #expect(pushes.map(\.pushKind) == ["state.change", "state.change"])
        #expect(pushes.map(\.pushRevision) == [stage.revision - 1, stage.revision])
        #expect(try peer.ask("PING").shown == "+PONG")
    }

    @Test func `what is caught up on from the history is the same`() throws {
        let before = stage.revision
        try changeAll()
        let peer = try stage.connect()
        try ask(peer, "STATE.WATCH / FROM \(before) PREVIOUS")
        let pushes = try peer.next(2).map(\.shown)
        #expect(
            pushes == [
                "push[\"state.change\", 1, \(before + 1), [[\"free\", \"f2\", \"f1\"]]]",
                "push[\"state.change\", 1, \(before + 4), [[\"free\", (nil), \"f2\"]]]",
            ]
        )
        let changes = try peer.ask("STATE.CHANGES SINCE \(before) PREVIOUS /").shown
        #expect(
            changes == "[\"ok\", \(before + 4), [[\(before + 1), [[\"free\", \"f2\", \"f1\"]]], "
                + "[\(before + 4), [[\"free\", (nil), \"f2\"]]]]]"
        )
        try ask(peer, "STATE.WATCH / FROM \(before) LATEST")
        #expect(
            try peer.next(2).map(\.shown) == [
                "push[\"state.change\", 2, \(before + 4), [[\"free\", (nil)]]]",
                "push[\"state.synced\", 2, \(before + 4)]",
            ]
        )
    }

    @Test(arguments: ["", " LATEST"])
    func `a snapshot is of what may be seen`(mode: String) throws {
        let peer = try stage.connect()
        try ask(peer, "STATE.WATCH / SNAPSHOT\(mode)")
        #expect(
            try peer.next(2).map(\.shown) == [
                "push[\"state.change\", 1, 0, [[\"free\", \"f1\", \(stage.revision)]]]",
                "push[\"state.synced\", 1, \(stage.revision)]",
            ]
        )
        let changes = try peer.ask("STATE.CHANGES SINCE 99 /").shown
        let row = "[\"free\", \"f1\", \(stage.revision)]"
        #expect(changes == "[\"gap\", \(stage.revision), [\(row)]]")
    }

    @Test func `who creates an entry is told of it, and of its end, and not of the next owner's`()
        throws
    {
        let peer = try stage.connect()
        try ask(peer, "STATE.WATCH own/")
        try stage.set("own/mine", "1", by: me)
        try stage.change([("own/mine", nil)])
        try stage.set("own/mine", "theirs")
        try stage.set("own/last", "2", by: me)
        let changes = try peer.next(3).map { $0.elements?[3].shown }
        #expect(
            changes == [
                "[[\"own/mine\", \"1\"]]", "[[\"own/mine\", (nil)]]", "[[\"own/last\", \"2\"]]",
            ]
        )
    }

    @Test func `a snapshot of what may not be seen ends`() throws {
        try stage.change((0..<20_000).map { ("secret/\($0)", "s") })
        let peer = try stage.connect()
        try ask(peer, "STATE.WATCH / SNAPSHOT")
        #expect(try peer.next(2).last?.pushKind == "state.synced")
    }

    @Test func `STATE CHANGES waits for a commit that may be seen`() throws {
        let peer = try stage.connect()
        try peer.send("STATE.CHANGES SINCE \(stage.revision) BLOCK 0 PREVIOUS /")
        let before = stage.revision
        try stage.set("secret/k", "s9")
        try stage.set("free", "f9")
        let row = "[\(before + 2), [[\"free\", \"f9\", \"f1\"]]]"
        #expect(try peer.next().shown == "[\"ok\", \(before + 2), [\(row)]]")
    }

    // MARK: Other rules

    @Test(arguments: ["", " LATEST"])
    func `where rules of access change, a watch begins anew with what may be seen then`(
        mode: String
    ) throws {
        let peer = try stage.connect()
        try ask(peer, "STATE.WATCH / SNAPSHOT\(mode)")
        _ = try peer.next(2)
        try stage.exchange(
            #"{"keys": "free", "read": ["other"]}, {"keys": "own/", "read": ["other"]}"#
        )
        let pushes = try peer.next(3)
        #expect(pushes.map(\.pushKind) == ["state.gap", "state.change", "state.synced"])
        let keys = pushes[1].elements?[3].elements?.map { $0.elements?[0].shown }
        #expect(keys == ["\"quiet/k\"", "\"secret/k\""])
        try stage.change([("secret/k", "s5"), ("free", "f5")])
        #expect(try peer.next().elements?[3].shown == "[[\"secret/k\", \"s5\"]]")
    }

    @Test func `the same rules of access disturb nobody`() throws {
        let peer = try stage.connect()
        try ask(peer, "STATE.WATCH free")
        let same = """
            {"keys": "quiet/", "watch": ["other"]}, {"keys": "own/", "read": ["owner"]},
            {"keys": "secret/", "read": ["other"], "write": ["other"]},
            {"keys": "more", "readonly": true}
            """
        try stage.exchange(same)
        try stage.set("free", "f6")
        #expect(try peer.next().pushKind == "state.change")
    }

    @Test
    func
        `changes since before the rules of access changed are a gap, at once where somebody waits`()
        throws
    {
        let (peer, waiting) = (try stage.connect(), try stage.connect())
        let before = stage.revision
        try waiting.send("STATE.CHANGES SINCE \(before) BLOCK 0 /")
        try stage.server.catchUp()
        try stage.exchange(#"{"keys": "free", "read": ["other"]}"#)
        try stage.server.waitUntil("the change of access") { stage.revision > before }
        let shown = try waiting.next().shown
        #expect(
            shown.hasPrefix("[\"gap\", ") && shown.contains("\"s1\"") && !shown.contains("\"f1\"")
        )
        #expect(try peer.ask("STATE.CHANGES SINCE \(before) /").shown.hasPrefix("[\"gap\", "))
        let now = stage.revision
        #expect(try peer.ask("STATE.CHANGES SINCE \(now) /").shown == "[\"ok\", \(now), []]")
        try ask(peer, "STATE.WATCH / FROM \(before)")
        #expect(try peer.next().pushKind == "state.gap")
    }

    /// The server of a store that holds its commits, with two keys at revisions 1 and 2.
    private func held() throws -> (HeldBacking, ServedKeyspace, Peer) {
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) { $0.privilegedUsers = [] }
        let peer = try server.connect(3)
        for key in ["free", "seen"] { try ask(peer, "SET \(key) 1") }
        return (backing, server, peer)
    }

    private static let hiding = #"{"keys": "free", "read": ["other"]}"#
    private static let recordName = "handler:access"

    @Test
    func `rules of access whose record fails are a gap for who goes on, until it is recorded`()
        throws
    {
        let (backing, server, peer) = try held()
        backing.hold()
        try server.exchangeRules(AccessStage.table(Self.hiding).byKey)
        #expect(backing.held() != nil)
        backing.fail(StateError(.noSpace, "the disk is full"))
        try server.waitUntil("the failure") {
            server.log.current.contains { $0.contains("NOSPACE") }
        }
        let gap = #"["gap", 2, [["seen", "1", 2]]]"#
        #expect(try peer.ask("STATE.CHANGES SINCE 2 /").shown == gap)
        let watcher = try server.connect(3)
        try ask(watcher, "STATE.WATCH / FROM 2")
        let pushes = try watcher.next(3).map(\.pushKind)
        #expect(pushes == ["state.gap", "state.change", "state.synced"])

        backing.open()
        try ask(peer, "SET seen 2")
        try server.waitUntil("the record") {
            server.keyspace.withCore { $0.revisions.durable } == 5
        }
        #expect(backing.metadata[Self.recordName] != nil)
        #expect(try peer.ask("STATE.CHANGES SINCE 5 /").shown == #"["ok", 5, []]"#)
        #expect(try peer.ask("STATE.CHANGES SINCE 2 /").shown.hasPrefix(#"["gap", 5"#))
    }

    @Test
    func `rules of access that change while the store is reopened are recorded once it is open`()
        throws
    {
        let (backing, server, peer) = try held()
        backing.holdReopening()
        backing.hold()
        try peer.send("SET seen 2")
        #expect(backing.held() != nil)
        backing.fail(StateError(.readOnly, "outcome unknown: the sync failed"))
        #expect(try peer.next().errorText?.hasPrefix("READONLY") == true)
        backing.open()
        try server.exchangeRules(AccessStage.table(Self.hiding).byKey)
        let gap = #"["gap", 2, [["seen", "1", 2]]]"#
        #expect(try peer.ask("STATE.CHANGES SINCE 2 /").shown == gap)
        #expect(backing.metadata[Self.recordName] == nil)
        // Back to no rules: what was seen meanwhile is not all there is.
        try server.exchangeRules(nil)
        #expect(try peer.ask("STATE.CHANGES SINCE 2 /").shown.contains(#"["free", "1", 1]"#))

        backing.openAgain()
        try server.waitUntil("the record") {
            server.keyspace.withCore { $0.revisions.durable } == 4
        }
        #expect(backing.metadata[Self.recordName] != nil)
        #expect(try peer.ask("STATE.CHANGES SINCE 4 /").shown == #"["ok", 4, []]"#)
        #expect(try peer.ask("STATE.CHANGES SINCE 2 /").shown.hasPrefix(#"["gap", 4"#))
    }

    // MARK: Channels

    @Test(arguments: [2, 3])
    func `a message goes to those who may hear its channel, and they are counted`(
        version: Int
    ) throws {
        let hearer = try stage.connect(version)
        try hearer.send("PSUBSCRIBE *", "SUBSCRIBE free")
        _ = try hearer.next(2)
        let refused = try hearer.ask("SUBSCRIBE free secret/c").errorText
        #expect(refused == "NOPERM channel 'secret/c': uid \(me) may not read it (rule 1, read)")
        let peer = try stage.connect()
        try peer.expect(
            """
            > PUBLISH quiet/c 1
            > PUBLISH secret/c 2
            > PUBLISH free 3
            > PUBSUB CHANNELS
            > PUBSUB NUMSUB secret/c
            0
            -NOPERM channel 'secret/c': uid \(me) may not write it (rule 1, write)
            2
            ["free"]
            -NOPERM channel 'secret/c': uid \(me) may not read it (rule 1, read)
            """
        )
        let heard = try hearer.next(2).compactMap { $0.elements?.last?.shown }
        #expect(heard == ["\"3\"", "\"3\""])
    }

    @Test func `notices of keys go to those who may watch them`() throws {
        let hearer = try stage.connect(2)
        try hearer.send("PSUBSCRIBE __key*", "SUBSCRIBE __keyspace@0__:own/k")
        _ = try hearer.next(2)
        #expect(
            try hearer.ask("SUBSCRIBE __keyspace@0__:secret/k").errorText
                == "NOPERM channel 'secret/k': uid \(me) may not read it (rule 1, read)"
        )
        try changeAll()
        let heard = try hearer.next(4).compactMap { $0.elements?.suffix(2).map(\.shown) }
        #expect(
            heard == [
                ["\"__keyspace@0__:free\"", "\"set\""], ["\"__keyevent@0__:set\"", "\"free\""],
                ["\"__keyspace@0__:free\"", "\"del\""], ["\"__keyevent@0__:del\"", "\"free\""],
            ]
        )
        let forged = try stage.connect().ask("PUBLISH __keyspace@0__:secret/k set")
        #expect(forged.errorText?.hasPrefix("NOPERM channel 'secret/k'") == true)
        #expect(try stage.connect().ask("PUBLISH __keyevent@0__:set secret/k").errorText != nil)
    }
}
