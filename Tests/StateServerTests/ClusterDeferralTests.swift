import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What a cluster has is on stable storage there: if the rule says so, everybody here has it before it is stored here, too.
struct ClusterDeferralTests {
    private let backing = HeldBacking(isHeld: false)
    private let server: ServedKeyspace
    private let link: FakeLink
    private let client: Peer

    init() throws {
        server = try ServedKeyspace(backing) { MirrorTests.mirror(&$0) }
        let rules = deferringRules("app/", every: .seconds(3_600), backing: .cluster)
        try server.keyspace.install(rules: rules)
        link = try FakeLink(server)
        client = try server.connect(3)
        backing.hold()
    }

    /// The cluster's revision in storage.
    private var storedRevision: String? {
        let text = backing.metadata[MirrorPosition.metadataName] ?? ""
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.count == 4 ? String(lines[2]) : nil
    }

    /// The keys of the commit that waits.
    private func heldKeys() -> [String]? {
        backing.held().map { $0.map { String(decoding: $0.key, as: UTF8.self) } }
    }

    private var deferredCount: Int { server.keyspace.deferred.count }

    @Test func `a change is answered, shown and current before it is stored here`() throws {
        let watcher = try server.connect(3)
        _ = try watcher.ask("STATE.WATCH app/")
        let count = backing.attemptCount
        try client.send("SET app/a z")
        try link.commit("SET app/a 2 z", of: try link.batch())
        #expect(try client.next() == .simple("OK"))
        try link.commit("SET app/c 1 y")
        try link.take("BEAT 12 0 0")
        let kinds = try watcher.next(2).map { $0.elements?.first?.textValue }
        #expect(kinds == ["state.change", "state.change"])
        let entry = try client.ask("STATE.GET app/a")
        #expect(entry["current"] == .integer(1) && entry["durability"]?.textValue == "synced")
        #expect(server.durable() == ["app/a": "z", "app/b": "y", "app/c": "y"])
        #expect(backing.attemptCount == count && deferredCount == 2)
        #expect(storedRevision == "10")
    }

    @Test func `atomic: it is stored in order before what waits, together with the position`()
        throws
    {
        try link.commit("SET app/a 2 z")
        try link.commit("DELETE app/b")
        try client.send("SET other 1")
        #expect(heldKeys() == ["app/a", "app/b", "other"])
        #expect(storedRevision == "10")
        backing.release()
        #expect(try client.next() == .simple("OK"))
        #expect(storedRevision == "12" && deferredCount == 0)
    }

    @Test(arguments: [true, false])
    func `after an unknown outcome the stream goes on where it was`(isKept: Bool) throws {
        try link.commit("SET app/a 2 z")
        try client.send("SET other 1")
        #expect(heldKeys() == ["app/a", "other"])
        backing.fail(StateError(.readOnly, "outcome unknown: the sync failed"), isKept: isKept)
        backing.open()
        _ = try client.next()
        try server.waitUntil("writes") {
            try client.ask("SET again 1") == .simple("OK")
        }
        #expect(server.durable()["app/a"] == "z")
        #expect(server.durable()["other"] == (isKept ? "1" : nil))
        try link.commit("SET app/a 3 y")
        #expect(try client.ask("GET app/a").textValue == "y")
        _ = try client.ask("STATE.SYNC LOCAL")
        #expect(storedRevision == "12" && deferredCount == 0)
        #expect(backing.kept.count { $0.key == Array("app/a".utf8) } == 3)
    }

    @Test func `if storage refuses it, later changes wait for storage`() throws {
        try server.exchangeRules(
            deferringRules("app/", every: .milliseconds(20), backing: .cluster)
        )
        try link.commit("SET app/a 2 z")
        #expect(heldKeys() == ["app/a"])
        backing.fail(StateError(.noSpace, "the disk is full"))
        #expect(server.durable()["app/a"] == "z" && storedRevision == "10")
        try server.waitUntil("a refusal") {
            server.log.current.contains { $0.contains("cannot be stored") }
        }
        try link.peer.send("STATE.MIRROR COMMIT 11 12 9:s SET app/a 3 y")
        #expect(heldKeys() == ["app/a", "app/a"])
        #expect(server.durable()["app/a"] == "z")
        backing.open()
        #expect(try link.peer.next() == .simple("OK"))
        #expect(server.durable()["app/a"] == "y" && storedRevision == "12")
    }

    @Test func `what a client asks to be stored here waits for that`() throws {
        try client.send("STATE.SET app/a z DURABILITY synced")
        let batch = try link.batch()
        let commit = [
            "STATE.MIRROR", "COMMIT", "10", "11", "9:s", "BY", "n1",
            "\(batch.number)\u{1E}\(batch.writers)", "SET", "app/a", "2", "z",
        ]
        try link.peer.send([commit.map { Array($0.utf8) }])
        #expect(heldKeys() == ["app/a"])
        #expect(try client.arrived().isEmpty)
        backing.open()
        #expect(try client.next()["durability"]?.textValue == "synced")
        #expect(storedRevision == "11")
    }
}
