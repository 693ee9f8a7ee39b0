import Glibc
import StateEngine
import StateSQLite
import StateServer
import StateTestSupport
import StateWire
import Testing

/// Changes of a cluster's keys by clients: tried, guarded, decided elsewhere, and carried out again.
struct ClusterWriteTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace { MirrorTests.mirror(&$0) } }

    @Test
    func
        `durable before told: a change is made when it comes back, with its event before its reply`()
        throws
    {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        _ = try client.ask("STATE.WATCH app/ BY")
        try client.send("STATE.SET app/a z")
        let batch = try link.batch()
        #expect(batch.position == 10)
        #expect(batch.writes == [["PUT", "app/a", "z"]])
        #expect(batch.writers.hasSuffix("\tapp/a"))
        #expect(server.durable()["app/a"] == "x")
        #expect(try client.arrived().isEmpty)
        try link.commit("SET app/a 2 z", of: batch)
        let (event, reply) = (try client.next(), try client.next())
        #expect(event.pushRevision == 2)
        #expect(reply["revision"] == .integer(2))
        let entry = try client.ask("STATE.GET app/a")
        #expect(entry["version"] == .integer(2) && entry["created"] == .integer(1))
        #expect(entry["by"]?.textValue?.hasPrefix("\(geteuid()):") == true)
        #expect(entry["by"]?.textValue?.contains("etcd") == false)
    }

    /// Commands, what is sent of them, what the cluster makes of it, and the reply.
    static let commands = [
        ("SET app/a 1", "PUT app/a 1", "SET app/a 2 1", "+OK"),
        ("INCR app/n", "ABSENT app/n PUT app/n 1", "SET app/n 1 1", ":1"),
        ("APPEND app/a y", "PRESENT app/a PUT app/a xy", "SET app/a 2 xy", ":2"),
        ("DEL app/a", "PRESENT app/a DELETE app/a", "DELETE app/a", ":1"),
        ("SET app/c 1 NX", "ABSENT app/c PUT app/c 1", "SET app/c 1 1", "+OK"),
        ("GETDEL app/a", "PRESENT app/a DELETE app/a", "DELETE app/a", "x"),
        (
            "RENAME app/a app/c", "PRESENT app/a DELETE app/a PUT app/c x",
            "DELETE app/a SET app/c 1 x", "+OK"
        ),
        ("MSET app/a 1 app/c 2", "PUT app/a 1 PUT app/c 2", "SET app/a 2 1 SET app/c 1 2", "+OK"),
        (
            "STATE.APPLY 2 SET app/a 5 DELETE app/b", "PRESENT app/b PUT app/a 5 DELETE app/b",
            "SET app/a 2 5 DELETE app/b", "{\"revision\": 2, \"count\": 2}"
        ),
    ]

    @Test(arguments: commands)
    func `each command is guarded by what it has read`(
        command: String,
        sent: String,
        made: String,
        reply: String
    ) throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send(command)
        let batch = try link.batch()
        let words = batch.writes.first ?? []
        #expect(words.sorted() == sent.split(separator: " ").map(String.init).sorted(), "\(words)")
        try link.commit(made, of: batch)
        let answer = try client.next()
        #expect(answer == expected(reply, answer), "\(answer.shown)")
    }

    private func expected(_ text: String, _ answer: Reply) -> Reply {
        switch text.first {
        case "+": .simple(String(text.dropFirst()))
        case ":": .integer(Int64(text.dropFirst()) ?? -1)
        case "{": answer["count"] == .integer(2) ? answer : .null
        default: .bulk(Array(text.utf8))
        }
    }

    @Test func `what has changed meanwhile is read again`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("INCR app/n")
        let first = try link.batch()
        #expect(first.writes.first?.contains("ABSENT") == true)
        try link.commit("SET app/n 1 41")
        try link.commit("", of: first)
        let second = try link.batch()
        #expect(second.position == 12)
        #expect(second.writes == [["PRESENT", "app/n", "PUT", "app/n", "42"]])
        try link.commit("SET app/n 2 42", of: second)
        #expect(try client.next() == .integer(42))
    }

    @Test func `a command that is always late gets a conflict`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("INCR app/n")
        for version in 1...16 {
            let batch = try link.batch()
            try link.commit("SET app/n \(version) \(version)")
            try link.commit("", of: batch)
        }
        #expect(try client.next().errorText?.hasPrefix("CONFLICT other machines changed") == true)
        #expect(try link.arrived() == 0)
    }

    @Test func `a condition that fails here is confirmed, and may hold there`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("SET app/a 1 NX")
        let barrier = try link.batch()
        #expect(barrier.writes == [[]])
        try link.commit("", of: barrier)
        #expect(try client.next() == .null)
        try client.send("STATE.SET app/a 1 IFREV 0")
        let second = try link.batch()
        try link.commit("DELETE app/a")
        try link.commit("", of: second)
        let third = try link.batch()
        #expect(third.writes == [["ABSENT", "app/a", "PUT", "app/a", "1"]])
        try link.commit("SET app/a 1 1", of: third)
        #expect(try client.next()["revision"] != nil)
    }

    @Test func `one batch is under way, and the next gathers what came meanwhile`() throws {
        let link = try FakeLink(server)
        let clients = try (0..<5).map { _ in try server.connect(3) }
        try clients[0].send("SET app/c0 v")
        let first = try link.batch()
        for index in 1..<5 { try clients[index].send("SET app/c\(index % 4) v\(index)") }
        try server.catchUp()
        #expect(try link.arrived() == 0)
        try link.commit("SET app/c0 1 v", of: first)
        let second = try link.batch()
        #expect(second.writes.count == 4)
        try clients[0].send("SET app/c1 w")
        try clients[1].send("PING")
        // One key of the batch was not changed by it, as if another machine had read and won.
        try link.commit(
            "SET app/c1 1 v1 SET app/c2 1 v2 SET app/c3 1 v3 SET app/c0 2 v4",
            of: second
        )
        let third = try link.batch()
        #expect(third.writes == [["PUT", "app/c1", "w"]])
        for client in clients { #expect(try client.next() == .simple("OK")) }
    }

    @Test func `ordered: commands of one key are decided one after the other`() throws {
        let link = try FakeLink(server)
        let clients = try (0..<3).map { _ in try server.connect(3) }
        try clients[0].send("INCR app/n")
        let first = try link.batch()
        try clients[1].send("INCR app/n")
        try clients[2].send("STATE.APPLY 2 CHECK app/n 2 SET app/m 1")
        try server.catchUp()
        try link.commit("SET app/n 1 1", of: first)
        let second = try link.batch()
        #expect(second.writes.count == 1)
        #expect(second.writes[0].suffix(3) == ["PUT", "app/n", "2"])
        try link.commit("SET app/n 2 2", of: second)
        // Now its condition does not hold.
        let third = try link.batch()
        #expect(third.writes == [[]])
        try link.commit("", of: third)
        #expect(try clients[0].next() == .integer(1))
        #expect(try clients[1].next() == .integer(2))
        #expect(try clients[2].next().errorText?.hasPrefix("CONFLICT") == true)
    }

    @Test
    func `atomic: a transaction is one change, and EXEC with WATCH does nothing if it is late`()
        throws
    {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        func execute(_ commands: String...) throws {
            for command in commands { _ = try client.ask(command) }
            try client.send("EXEC")
        }
        try execute("MULTI", "DEL app/a", "SET app/a n", "INCR app/n", "GET app/n")
        let first = try link.batch()
        try link.commit("SET app/a 2 n SET app/n 1 1", of: first)
        let reply = try client.next().elements
        #expect(reply == [.integer(1), .simple("OK"), .integer(1), .bulk(Array("1".utf8))])
        // Deleted and set in one transaction, it is the same key there.
        #expect(try client.ask("STATE.GET app/a")["version"] == .integer(2))
        #expect(try client.ask("STATE.GET app/a")["created"] == .integer(1))
        _ = try client.ask("WATCH app/b")
        try execute("MULTI", "SET app/c 1")
        let second = try link.batch()
        #expect(second.writes.first?.prefix(2) == ["PRESENT", "app/b"])
        try link.commit("SET app/b 3 other")
        try link.commit("", of: second)
        #expect(try client.next() == .null)
        #expect(server.durable()["app/c"] == nil)
    }

    @Test(arguments: [
        "MSET k 1 app/a 2", "RENAME app/a k", "RENAME k app/k", "COPY k app/k",
        "STATE.SET app/a 1 LIFETIME connection", "SET app/.stated/x 1", "STATE.DELETE /",
    ])
    func `what a cluster cannot decide is refused`(command: String) throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        _ = try client.ask("SET k v")
        #expect(try client.ask(command).errorText?.hasPrefix("REJECTED") == true, "\(command)")
        #expect(server.durable() == ["app/a": "x", "app/b": "y", "k": "v"])
        #expect(try link.arrived() == 0)
    }

    @Test func `all keys below a prefix are deleted at once`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let keys = (10..<60).map { "app/d/\($0)" }
        try link.commit(keys.map { "SET \($0) 1 v" }.joined(separator: " "))
        try client.send("STATE.DELETE app/d/")
        let batch = try link.batch()
        let words = batch.writes.first ?? []
        #expect(words.suffix(3) == ["CLEAR", "app/d/", "app/d0"])
        #expect(words.contains("RANGE"))
        try link.commit(keys.map { "DELETE \($0)" }.joined(separator: " "), of: batch)
        #expect(try client.next()["count"] == .integer(50))
        #expect(server.durable() == ["app/a": "x", "app/b": "y"])
    }

    @Test func `STATE.SYNC waits for everything that the cluster had`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("STATE.SYNC")
        let barrier = try link.batch()
        #expect(barrier.writes == [[]])
        try link.commit("SET app/a 2 new")
        #expect(try client.arrived().isEmpty)
        try link.commit("", of: barrier)
        #expect(try client.next()["revision"] != nil)
        #expect(try client.ask("GET app/a") == .bulk(Array("new".utf8)))
    }

    @Test func `who wrote it elsewhere is named, and owns nothing here`() throws {
        let directory = try TemporaryDirectory()
        let backing = SQLiteBacking(directory: directory.path(of: "data"))
        let server = try ServedKeyspace(backing) { MirrorTests.mirror(&$0) }
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let words = Peer.words("STATE.MIRROR COMMIT 10 11 9:s BY web2")
        let text = "7\u{1E}4711:5:6:statectl:\tapp/c\tapp/d\u{1E}4712:5:7:x:\tapp/e"
        let changes = Peer.words("SET app/c 1 v SET app/d 1 v SET app/e 1 v SET app/f 1 v")
        #expect(try link.peer.ask(words + [Array(text.utf8)] + changes) == .simple("OK"))
        let expected = [
            ("c", "4711:5:6:statectl@web2:"), ("d", "4711:5:6:statectl@web2:"),
            ("e", "4712:5:7:x@web2:"),
        ]
        for (name, cause) in expected {
            let entry = try client.ask("STATE.GET app/\(name)")
            #expect(entry["by"]?.textValue == cause, "\(entry.shown)")
            #expect(entry["owner"] == .integer(Int64(geteuid())))
            #expect(entry["revision"] == .integer(2))
        }
        #expect(try client.ask("STATE.GET app/f")["by"]?.textValue?.contains(":etcd:") == true)
        let history = try client.ask("STATE.HISTORY app/c").elements
        #expect(history?.first?["by"]?.textValue == "4711:5:6:statectl@web2:")
    }

    @Test func `EXEC that waits does nothing if a key of WATCH has changed meanwhile`() throws {
        let link = try FakeLink(server)
        let (client, other) = (try server.connect(3), try server.connect(3))
        _ = try client.ask("WATCH app/w")
        _ = try client.ask("MULTI")
        _ = try client.ask("SET app/w mine")
        try other.send("SET app/w other")
        let first = try link.batch()
        try client.send("EXEC")
        try server.catchUp()
        try link.commit("SET app/w 1 other", of: first)
        #expect(try client.next() == .null)
        #expect(try link.arrived() == 0)
        #expect(server.durable()["app/w"] == "other")
    }

    @Test func `what a transaction sets and deletes is guarded, too`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        for command in ["MULTI", "SET app/c 1", "DEL app/c", "SET app/n 9"] {
            _ = try client.ask(command)
        }
        try client.send("EXEC")
        #expect(try link.batch().writes == [["ABSENT", "app/c", "PUT", "app/n", "9"]])
    }
}
