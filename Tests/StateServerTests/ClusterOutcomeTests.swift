import Glibc
import StateEngine
import StateServer
import StateTestSupport
import StateWire
import Testing

/// What becomes of changes of a cluster that are not simply made: lost answers, refusals, failures.
struct ClusterOutcomeTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace { MirrorTests.mirror(&$0) } }

    @Test func `never silent: cut off, nothing is sent, and what waited is refused`() throws {
        let server = try ServedKeyspace { MirrorTests.mirror(&$0, staleMilliseconds: 3_000) }
        let (link, client) = (try FakeLink(server, isCurrent: false), try server.connect(3))
        try client.send("SET app/a 1")
        #expect(try client.next().errorText?.hasPrefix("AWAY app/ is cut off since") == true)
        #expect(try client.ask("DEL app/none").errorText?.hasPrefix("AWAY") == true)
        #expect(try client.ask("STATE.SYNC").errorText?.hasPrefix("AWAY") == true)
        #expect(try client.ask("STATE.SYNC LOCAL")["revision"] == .integer(1))
        #expect(try client.ask("STATE.SET app/a 1 IFREV 7").errorText?.hasPrefix("AWAY") == true)
        #expect(try client.ask("SET k v") == .simple("OK"))
        #expect(try client.ask("GET app/a") == .bulk(Array("x".utf8)))
        #expect(try link.arrived() == 0)
    }

    @Test func `a lost answer is settled by the next session: not committed, it is sent again`()
        throws
    {
        var first: FakeLink? = try FakeLink(server)
        let client = try server.connect(3)
        try client.send("INCR app/n")
        let lost = try #require(try first?.batch())
        let second = try FakeLink(after: #require(first), server)
        first = nil
        #expect(try second.arrived() == 0)
        try second.take("READY 128 100000")
        let again = try second.batch()
        #expect(again.number != lost.number)
        #expect(again.writes == lost.writes)
        try second.commit("SET app/n 1 1", of: again)
        #expect(try client.next() == .integer(1))
        // What the old one had sent would be a change like any other.
        try second.commit("SET app/n 2 7", of: lost)
        #expect(server.durable()["app/n"] == "7")
    }

    @Test func `a lost answer is settled by the stream: committed, it is answered`() throws {
        let (first, client) = (try FakeLink(server), try server.connect(3))
        try client.send("INCR app/n")
        let lost = try first.batch()
        let second = try FakeLink(after: first, server)
        try second.commit("SET app/n 1 1", of: lost)
        try second.take("READY 128 100000")
        #expect(try client.next() == .integer(1))
        #expect(try second.arrived() == 0)
    }

    @Test func `never silent: what was not seen is not known`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("INCR app/n")
        _ = try link.batch()
        for step in ["BEGIN", "RESYNC h1 compacted", "ROWS app/a 1 x app/n 1 1", "SYNCED 20 9:s"] {
            try link.take(step)
        }
        #expect(try client.next().errorText?.hasPrefix("OUTCOMEUNKNOWN app/: the answer") == true)
        #expect(server.durable() == ["app/a": "x", "app/n": "1"])
    }

    @Test func `what only asks for the newest state has no unknown outcome`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("STATE.SET app/a 1 IFREV 7")
        #expect(try link.batch().writes == [[]])
        for step in ["BEGIN", "RESYNC h1 compacted", "ROWS app/a 1 x", "SYNCED 20 9:s"] {
            try link.take(step)
        }
        let answer = try client.next().errorText
        #expect(answer?.hasPrefix("AWAY app/: the cluster did not answer") == true)
        #expect(try client.ask("STATE.STATUS")["cluster_unknown"] == .integer(0))
    }

    @Test func `never silent: an unknown outcome that etcd has refused has its verdict`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("SET app/a 1")
        let batch = try link.batch()
        // Ten seconds later.
        #expect(try client.next().errorText?.hasPrefix("OUTCOMEUNKNOWN") == true)
        #expect(try client.ask("STATE.STATUS")["cluster_unknown_lost"] == .integer(0))
        try link.take("FAILED \(batch.number) NOPERM denied")
        let status = try client.ask("STATE.STATUS")
        #expect(status["cluster_unknown"] == .integer(1))
        #expect(status["cluster_unknown_lost"] == .integer(1))
    }

    @Test func `a refusal is for the command that caused it`() throws {
        let link = try FakeLink(server)
        let clients = try (0..<3).map { _ in try server.connect(3) }
        try clients[0].send("SET app/c0 v")
        let first = try link.batch()
        try clients[1].send("SET app/c1 v")
        try clients[2].send("SET app/c2 v")
        try server.catchUp()
        try link.commit("SET app/c0 1 v", of: first)
        let both = try link.batch()
        #expect(both.writes.count == 2)
        try link.take("FAILED \(both.number) NOPERM denied")
        let one = try link.batch()
        #expect(one.writes.count == 1)
        try link.take("FAILED \(one.number) NOPERM denied")
        let other = try link.batch()
        #expect(other.writes.count == 1 && other.writes != one.writes)
        try link.commit("SET app/c2 1 v", of: other)
        #expect(try clients[1].next() == .error(StateError(.noPermission, "denied")))
        #expect(try clients[2].next() == .simple("OK"))
    }

    @Test func `a cluster that is full is current, and refuses changes by name`() throws {
        let (link, client) = (try FakeLink(server, isReady: false), try server.connect(3))
        try client.send("SET app/a 1")
        try server.catchUp()
        try link.take("REFUSING NOSPACE \"no space\"")
        let refusal = Reply.error(StateError(.noSpace, "no space"))
        #expect(try client.next() == refusal)
        #expect(try client.ask("SET app/a 1") == refusal)
        #expect(try client.ask("STATE.GET app/a")["current"] == .integer(1))
        try link.take("READY 128 100000")
        try client.send("SET app/a 1")
        #expect(try link.batch().writes == [["PUT", "app/a", "1"]])
    }

    @Test func `bounded: what etcd does not take in one transaction is too big`() throws {
        let (link, client) = (try FakeLink(server, isReady: false), try server.connect(3))
        try link.take("READY 10 1000")
        let value = String(repeating: "v", count: 1_000)
        #expect(try client.ask("SET app/c \(value)").errorText?.hasPrefix("TOOBIG") == true)
        let pairs = (0..<9).map { "app/k\($0) v" }.joined(separator: " ")
        #expect(try client.ask("MSET \(pairs)").errorText?.contains("--max-txn-ops") == true)
        try client.send("SET app/c v")
        #expect(try link.batch().writes == [["PUT", "app/c", "v"]])
    }

    @Test func `a command that comes back as another is mirrored, and its client is told`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("SET app/a mine")
        let batch = try link.batch()
        try link.commit("SET app/a 2 other", of: batch)
        #expect(try client.next().errorText?.hasPrefix("OUTCOMEUNKNOWN") == true)
        #expect(server.durable()["app/a"] == "other")
        #expect(try client.ask("STATE.GET app/a")["version"] == .integer(2))
    }

    @Test func `storage that fails here does not undo what the cluster has`() throws {
        let backing = HeldBacking(isHeld: false)
        let server = try ServedKeyspace(backing) { MirrorTests.mirror(&$0) }
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("SET app/a z")
        let batch = try link.batch()
        backing.hold()
        let commit = [
            "STATE.MIRROR", "COMMIT", "10", "11", "9:s", "BY", "n1",
            "\(batch.number)\u{1E}\(batch.writers)", "SET", "app/a", "2", "z",
        ]
        try link.peer.send([commit.map { Array($0.utf8) }])
        try server.catchUp()
        _ = backing.held()
        backing.fail(StateError(.noSpace, "the disk is full"))
        backing.open()
        #expect(try link.peer.next().errorText?.hasPrefix("NOSPACE") == true)
        let answer = try client.next().errorText
        #expect(answer?.hasPrefix("OUTCOMEUNKNOWN the cluster has the change") == true)
        #expect(server.durable()["app/a"] == "x")
        _ = try link.peer.ask("STATE.MIRROR BEGIN")
        #expect(try link.peer.ask(commit.map { Array($0.utf8) }) == .simple("OK"))
        #expect(server.durable()["app/a"] == "z")
    }

    @Test func `a client that leaves has changed what the cluster has decided`() throws {
        let link = try FakeLink(server)
        var client: Peer? = try server.connect(3)
        try client?.send("SET app/a z")
        let batch = try link.batch()
        client = nil
        try server.waitForClients(1)
        try link.commit("SET app/a 2 z", of: batch)
        #expect(server.durable()["app/a"] == "z")
        let other = try server.connect(3)
        let cause = try other.ask("STATE.GET app/a")["by"]?.textValue
        #expect(cause?.hasPrefix("\(geteuid()):") == true && cause?.contains("etcd") == false)
    }

    @Test func `a refused step of the link ends the sending, not the commands`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let refused = try link.peer.ask("STATE.MIRROR COMMIT 99 100 9:s").errorText
        #expect(refused?.hasPrefix("CONFLICT") == true)
        try client.send("SET app/a z")
        try server.catchUp()
        let next = try FakeLink(after: link, server)
        try next.take("READY 128 100000")
        let batch = try next.batch()
        try next.commit("SET app/a 2 z", of: batch)
        #expect(try client.next() == .simple("OK"))
    }

    @Test func `what is no signature hides no change`() throws {
        let link = try FakeLink(server)
        let words = Peer.words("STATE.MIRROR COMMIT 10 11 9:s BY evil")
        let text = "7\u{1E}nonsense\tapp/a\u{1E}\u{1E}x"
        let changes = Peer.words("SET app/a 2 new DELETE app/b")
        #expect(try link.peer.ask(words + [Array(text.utf8)] + changes) == .simple("OK"))
        #expect(server.durable() == ["app/a": "new"])
    }

    @Test func `bounded: a client that leaves before its change is sent leaves nothing`() throws {
        let (link, first) = (try FakeLink(server), try server.connect(3))
        try first.send("SET app/c0 v")
        let batch = try link.batch()
        var second: Peer? = try server.connect(3)
        try second?.send("SET app/c1 v")
        try server.catchUp()
        let other = try server.connect(3)
        #expect(try other.ask("STATE.STATUS")["cluster_waiting"] == .integer(2))
        second = nil
        try server.waitForClients(3)
        #expect(try other.ask("STATE.STATUS")["cluster_waiting"] == .integer(1))
        try link.commit("SET app/c0 1 v", of: batch)
        #expect(try first.next() == .simple("OK"))
        #expect(try link.arrived() == 0)
    }

    @Test func `never silent: a daemon that stops answers what waits`() throws {
        let link = try FakeLink(server)
        let (sent, waiting) = (try server.connect(3), try server.connect(3))
        try sent.send("SET app/c0 v")
        _ = try link.batch()
        try waiting.send("SET app/c1 v")
        try server.catchUp()
        server.stop()
        #expect(try sent.next().errorText?.hasPrefix("OUTCOMEUNKNOWN") == true)
        #expect(try waiting.next().errorText?.hasPrefix("AWAY the daemon stops") == true)
    }
}
