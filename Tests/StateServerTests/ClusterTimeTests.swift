import Glibc
import StateServer
import StateSystem
import StateTestSupport
import StateWire
import Testing

/// Keys of a cluster that end by themselves: the time is decided with the value, and the cluster
/// deletes them.
struct ClusterTimeTests {
    private let server: ServedKeyspace

    init() throws { server = try ServedKeyspace { MirrorTests.mirror(&$0) } }

    /// In an hour, in milliseconds since 1970.
    private let later = SystemClock.wallMilliseconds() + 3_600_000

    @Test func `a time goes with the value, and is the one that the cluster has`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("SET app/k v PXAT \(later)")
        let batch = try link.batch()
        #expect(batch.writes == [["UNTIL", "app/k", "v", "\(later)"]])
        try link.commit("SET app/k 1:\(later) v", of: batch)
        #expect(try client.next() == .simple("OK"))
        #expect(try client.ask("PEXPIRETIME app/k") == .integer(later))
        // A time from now on was computed when the command came.
        try client.send("SET app/k w EX 3600")
        let second = try link.batch()
        let time = try #require(second.writes.first?.last)
        try link.commit("SET app/k 2:\(time) w", of: second)
        #expect(try client.next() == .simple("OK"))
        #expect(try client.ask("PEXPIRETIME app/k") == .integer(Int64(time) ?? 0))
    }

    /// Commands on `app/k`, which ends later, and what is sent.
    static let commands = [
        ("APPEND app/k y", "UNTIL app/k vy LATER"), ("SET app/k w KEEPTTL", "UNTIL app/k w LATER"),
        ("SET app/k w", "PUT app/k w"), ("PERSIST app/k", "PUT app/k v"),
        ("GETEX app/k PERSIST", "PUT app/k v"), ("RENAME app/k app/c", "UNTIL app/c v LATER"),
        ("COPY app/k app/c", "UNTIL app/c v LATER"), ("EXPIREAT app/k 1", "DELETE app/k"),
        // Later by an 8,192nd at most.
        ("PEXPIREAT app/k 9000000000000", "UNTIL app/k v 9000103968768"),
    ]

    @Test(arguments: commands)
    func `each command keeps, changes or removes a time as it does elsewhere`(
        command: String,
        sent: String
    ) throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try link.commit("SET app/k 1:\(later) v")
        #expect(try client.ask("PEXPIRETIME app/k") == .integer(later))
        try client.send(command)
        let batch = try link.batch()
        let words = (batch.writes.first ?? []).joined(separator: " ")
        let wanted = sent.replacing("LATER", with: "\(later)")
        #expect(words.contains(wanted), "\(words)")
        // Whatever keeps a time depends on it.
        #expect(words.contains("PRESENT app/k") == (command != "SET app/k w"), "\(words)")
    }

    @Test func `a time from now on is one of a few, and none is too late to be one`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try client.send("SET app/k w EX 86400")
        let time = try #require(Int64(link.batch().writes.first?.last ?? ""))
        let day = SystemClock.wallMilliseconds() + 86_400_000
        #expect(time % 8_192 == 0 && time > day - 5_000 && time < day + 8_192)
        let late = try server.connect(3).ask("SET app/c w PXAT \(Int64.max - 1)")
        #expect(
            late.errorText?.contains("no time is after the year 10888") == true,
            "\(late.shown)"
        )
    }

    /// Commands that are decided after the end of the key, or of the time that they give.
    static let lateCommands = [
        ("INCR app/k", "SET app/k 2:TIME 8", ":8"),
        ("PEXPIREAT app/k LATER", "SET app/k 2:LATER 7", ":1"),
        ("PERSIST app/k", "SET app/k 2 7", ":1"),
        ("SET app/c 1 PX 100", "SET app/c 1:TIME 1", "+OK"),
    ]

    @Test(arguments: lateCommands)
    func `never silent: what is decided late is answered as it was tried`(
        command: String,
        made: String,
        reply: String
    ) throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let soon = SystemClock.wallMilliseconds() + 300
        func text(_ text: String) -> String {
            text.replacing("TIME", with: "\(soon)").replacing("LATER", with: "\(soon + 10)")
        }
        try link.commit("SET app/k 1:\(soon) 7")
        try client.send(text(command))
        let batch = try link.batch()
        while SystemClock.wallMilliseconds() < soon + 20 { usleep(10_000) }
        try link.commit(text(made), of: batch)
        let answer = try client.next()
        #expect(
            answer == (reply == "+OK" ? .simple("OK") : .integer(Int64(reply.dropFirst()) ?? 0))
        )
        let isLeft = try client.ask("EXISTS app/k app/c")
        #expect(isLeft == .integer(command.hasPrefix("PERSIST") ? 1 : 0))
    }

    @Test func `a prefix is deleted as a whole, also if a key of it has ended`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let keys = (10..<60).map { "SET app/p/\($0) 1 v" }.joined(separator: " ")
        try link.commit("\(keys) SET app/p/end 1:\(SystemClock.wallMilliseconds()) v")
        try client.send("STATE.DELETE app/p/")
        let batch = try link.batch()
        #expect(batch.writes.first?.contains("CLEAR") == true, "\(batch.writes)")
        #expect(batch.writes.first?.contains("DELETE") == false, "\(batch.writes)")
    }

    @Test func `a change without a time removes it, whoever makes it`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try link.commit("SET app/k 1:\(later) v")
        try link.commit("SET app/k 2 w")
        #expect(try client.ask("TTL app/k") == .integer(-1))
    }

    @Test func `durable before told: a key that has ended is absent, and the cluster deletes it`()
        throws
    {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let soon = SystemClock.wallMilliseconds() + 100
        _ = try client.ask("STATE.WATCH app/ BY")
        try client.send("SET app/k v PXAT \(soon)")
        try link.commit("SET app/k 1:\(soon) v", of: try link.batch())
        _ = (try client.next(), try client.next())
        let end = try link.batch()
        #expect(end.writes == [["PRESENT", "app/k", "DELETE", "app/k"]])
        #expect(end.writers.hasSuffix("expiry:\tapp/k"))
        #expect(try server.connect(3).ask("GET app/k") == .null)
        #expect(server.durable()["app/k"] == "v")
        #expect(try client.arrived().isEmpty)
        try link.commit("DELETE app/k", of: end)
        let event = try client.next()
        #expect(event.pushRevision == 3 && event.shown.contains(":expiry:"), "\(event.shown)")
        #expect(server.durable()["app/k"] == nil)
    }

    @Test func `atomic: a key that was set anew is not deleted`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let soon = SystemClock.wallMilliseconds() + 100
        try client.send("SET app/k v PXAT \(soon)")
        try link.commit("SET app/k 1:\(soon) v", of: try link.batch())
        _ = try client.next()
        let end = try link.batch()
        // The guard of the delete fails.
        try link.commit("SET app/k 2 w")
        try link.commit("", of: end)
        #expect(try client.ask("GET app/k") == .bulk(Array("w".utf8)))
        try client.send("SET app/k x NX")
        #expect(try link.batch().writes == [[]])
    }

    @Test func `a key that another machine has set is deleted here, if it is long over`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let now = SystemClock.wallMilliseconds()
        // The other machine deletes it, and its clock may be behind.
        try link.commit("SET app/k 1:\(now) v SET app/old 1:\(now - 60_000) v")
        #expect(try client.ask("EXISTS app/k app/old") == .integer(0))
        let end = try link.batch()
        #expect(end.writes == [["PRESENT", "app/old", "DELETE", "app/old"]])
        try link.commit("DELETE app/old", of: end)
        // It is looked at once a second; when another is deleted, it was looked at again.
        usleep(1_100_000)
        try link.commit("SET app/next 1:\(now - 60_000) v")
        #expect(try link.batch().writes == [["PRESENT", "app/next", "DELETE", "app/next"]])
    }

    @Test func `cut off, a key that has ended is absent, and stays until the cluster is back`()
        throws
    {
        let server = try ServedKeyspace { MirrorTests.mirror(&$0, staleMilliseconds: 3_000) }
        let (link, client) = (try FakeLink(server, isCurrent: false), try server.connect(3))
        try link.commit("SET app/k 1:\(SystemClock.wallMilliseconds() - 60_000) v")
        #expect(try client.ask("GET app/k") == .null)
        #expect(server.durable()["app/k"] == "v")
        #expect(try link.arrived() == 0)
        try link.take("BEAT \(link.revision) 0 0")
        #expect(try link.batch().writes == [["PRESENT", "app/k", "DELETE", "app/k"]])
    }

    @Test func `rows have times, and only what differs is changed`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        try link.take("RESYNC h1 again")
        try link.take("ROWS app/a 1:\(later) x app/b 2 y")
        try link.take("SYNCED 20 9:s")
        #expect(try client.ask("PEXPIRETIME app/a") == .integer(later))
        let revision = try client.ask("STATE.SYNC LOCAL")["revision"]
        try link.take("RESYNC h1 again")
        try link.take("ROWS app/a 1:\(later) x app/b 2 y")
        try link.take("SYNCED 21 9:s")
        #expect(try client.ask("STATE.GET app/a")["revision"] == revision)
        try link.take("RESYNC h1 again")
        try link.take("ROWS app/a 1 x app/b 2 y")
        try link.take("SYNCED 22 9:s")
        #expect(try client.ask("TTL app/a") == .integer(-1))
    }

    @Test func `bounded: keys that have ended do not wait for ever behind commands`() throws {
        let (link, clients) = (
            try FakeLink(server), try (0..<70).map { _ in try server.connect(3) }
        )
        try link.commit("SET app/old 1:\(SystemClock.wallMilliseconds() - 60_000) v")
        let end = ["PRESENT", "app/old", "DELETE", "app/old"]
        let first = try link.batch()
        #expect(first.writes == [end])
        for (index, client) in clients.enumerated() { try client.send("SET app/k\(index) 1") }
        // It comes again, and has room beside the commands of others; the batch before had none.
        usleep(1_100_000)
        try link.commit("", of: first)
        let second = try link.batch()
        // As many commands are tried as there is time for, which is little without an optimizer; a batch
        // has 64 writes at most.
        let isSlow = Extent.isSanitized || _isDebugAssertConfiguration()
        #expect(second.writes.last == end && second.writers.hasSuffix("expiry:\tapp/old"))
        #expect(((isSlow ? 2 : 51)...64).contains(second.writes.count), "\(second.writes.count)")
        try link.commit("", of: second)
        #expect(try link.batch().writes.first?.contains("PUT") == true)
    }

    @Test func `bounded: keys that have ended have the next batch if commands leave no room`()
        throws
    {
        let (link, clients) = (
            try FakeLink(server, isReady: false), try (0..<9).map { _ in try server.connect(3) }
        )
        try link.take("READY 4 100000")
        try link.commit("SET app/old 1:\(SystemClock.wallMilliseconds() - 60_000) v")
        let end = ["PRESENT", "app/old", "DELETE", "app/old"]
        let first = try link.batch()
        #expect(first.writes == [end])
        for (index, client) in clients.enumerated() { try client.send("INCR app/k\(index)") }
        usleep(1_100_000)
        try link.commit("", of: first)
        // A single command is all that the cluster takes at once.
        let second = try link.batch()
        #expect(second.writes.count == 1 && second.writes != [end], "\(second.writes)")
        try link.commit("", of: second)
        #expect(try link.batch().writes == [end])
    }

    @Test func `never silent: what ends with a client is refused by name`() throws {
        let (link, client) = (try FakeLink(server), try server.connect(3))
        let reply = try client.ask("STATE.SET app/k v LIFETIME connection")
        #expect(
            reply.errorText?.hasPrefix("REJECTED key 'app/k' belongs to the cluster") == true,
            "\(reply.shown)"
        )
        #expect(try link.arrived() == 0)
    }
}
