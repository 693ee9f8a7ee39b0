import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// How long keys that rules name last, how many there may be, and what they are if nobody has set them.
struct RuledLimitTests: RuledTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    // MARK: Time

    @Test func `a value expires, as a commit whose cause is expiry, stored or not`() throws {
        let daemon = try daemon(
            """
            { keys: 'lease/', expire: '300ms' }, { keys: 'lease/long', expire: '1h' },
            { keys: 'seen/', expire: '300ms', backing: 'memory' }
            """
        )
        let client = try daemon.connect()
        _ = try set(client, "lease/a", "1")
        _ = try set(client, "lease/long", "1")
        _ = try set(client, "seen/a", "1")
        let entry = try #require(try client.entry(for: "lease/long"))
        #expect(entry.expires == entry.time + 3_600_000)
        for key in ["lease/a", "seen/a"] {
            let gone = try Statectl.run(daemon, "wait", key, "--absent", "--timeout", "10s")
            #expect(gone.exitCode == 0, "\(key)")
        }
        let history = try Statectl.run(daemon, "--json", "history", "lease/a").text
        #expect(history.split(separator: "\n").first?.contains("expiry") == true, "\(history)")
        // A deadline goes on over a restart.
        _ = try set(client, "lease/b", "1")
        daemon.kill()
        try daemon.start()
        #expect(
            try Statectl.run(daemon, "wait", "lease/b", "--absent", "--timeout", "10s").exitCode
                == 0
        )
        #expect(try value(daemon.connect(), "lease/long") == "1")
        // What has expired is not revived.
        let revert = try Statectl.run(daemon, "revert", "lease/", "--to", "\(entry.revision)")
        #expect(revert.exitCode == 0)
        #expect(try value(daemon.connect(), "lease/a") == nil)
    }

    @Test func `setting a key again begins its time anew`() throws {
        let daemon = try daemon("{ keys: 'lease/', expire: '1h' }")
        let client = try daemon.connect()
        _ = try set(client, "lease/a", "1")
        let first = try #require(try client.entry(for: "lease/a")?.expires)
        for number in 0..<5_000 { _ = try set(client, "lease/a", "\(number)") }
        #expect(try #require(try client.entry(for: "lease/a")?.expires) > first)
    }

    // MARK: What is there when nobody has set it

    @Test func `a default answers GET and STATE.GET, and is nowhere else`() throws {
        let daemon = try daemon(
            "{ keys: 'audio/volume', default: 0.5, schema: { type: 'number' } }"
        )
        let client = try daemon.connect()
        #expect(try value(client, "audio/volume") == "0.5")
        let entry = try #require(try client.entry(for: "audio/volume"))
        #expect(entry.isDefault && entry.revision == 0)
        #expect(try Statectl.run(daemon, "get", "audio/volume").text == "0.5\n")
        #expect(
            try Statectl.run(daemon, "get", "audio/volume", "--long").text
                == "key:     audio/volume\nvalue:   0.5\ndefault: yes\n"
                + "origin:  default from rule 1, line 1\n"
        )
        #expect(try Statectl.run(daemon, "list").text == "")
        #expect(try client.count(of: .everything) == 0)
        for (words, reply) in [
            (["EXISTS", "audio/volume"], "0"), (["MGET", "audio/volume", "x"], "0.5"),
            (["SET", "audio/volume", "0.7", "NX"], "OK"), (["GET", "audio/volume"], "0.7"),
        ] {
            let result = try runCommand("redis-cli", ["-s", daemon.socketPath] + words)
            #expect(result.text.split(separator: "\n").first.map(String.init) == reply, "\(words)")
        }
        #expect(try client.entry(for: "audio/volume")?.isDefault == false)
        #expect(try Statectl.run(daemon, "delete", "audio/volume").exitCode == 0)
        #expect(try Statectl.run(daemon, "set", "audio/volume", "1", "--if-absent").exitCode == 0)
    }

    // MARK: Limits

    @Test func `each limit refuses with its name and number, and below it works again`() throws {
        let daemon = try daemon(
            """
            { keys: 'few/', limits: { keys: 2 } }, { keys: 'small/', limits: { bytes: 64 } },
            { keys: 'short/', limits: { valueBytes: 4 } },
            { keys: 'slow/', limits: { writesPerSecond: 3 } },
            { keys: 'seen/', limits: { watches: 2 } },
            { keys: 'deep', limits: { depth: 2 }, schema: {} },
            """
        )
        let client = try daemon.connect()
        func refused(_ key: String, _ value: String, _ code: StateError.Code, _ words: String) {
            let error = #expect(throws: StateError.self) { try set(client, key, value) }
            #expect(
                error?.code == code && error?.message.contains(words) == true,
                "\(error as Any)"
            )
        }
        _ = try set(client, "few/a", "1")
        _ = try set(client, "few/b", "1")
        let full = "the rule already has its 2 keys (rule 1, line 1, limits.keys)"
        refused("few/c", "1", .limit, full)
        _ = try set(client, "few/b", "2")
        _ = try client.delete(["few/a"])
        _ = try set(client, "few/c", "1")

        _ = try set(client, "small/a", String(repeating: "x", count: 50))
        let large = "72 bytes; the limit is 64 (rule 2, line 1, limits.bytes)"
        refused("small/b", "12345678", .limit, large)
        _ = try set(client, "small/a", "1")
        _ = try set(client, "small/b", "12345678")

        refused("short/a", "12345", .tooBig, "the limit is 4 (rule 3, line 2, limits.valueBytes)")
        _ = try set(client, "short/a", "1234")

        let words = "nested deeper than 2 at byte 2 (rule 6, line 5, limits.depth)"
        refused("deep", "[[[1]]]", .rejected, words)
        _ = try set(client, "deep", "[[1]]")

        var refusal: StateError?
        for number in 0..<10 where refusal == nil {
            do throws(StateError) { _ = try set(client, "slow/a", "\(number)") } catch {
                refusal = error
            }
        }
        #expect(refusal?.code == .limit)
        #expect(
            refusal?.message.contains("3 writes per second; try again (rule 4,") == true
        )
        try #require(eventually { (try? set(client, "slow/a", "again")) != nil })
        #expect(try value(client, "slow/a") == "again")
    }

    @Test func `a limit of watches and connections is of each uid`() throws {
        let daemon = try daemon(
            """
            { keys: '/', limits: { connections: 3 } }, { keys: 'seen/', limits: { watches: 1 } },
            { keys: 'seen/b', default: 1 },
            """
        )
        let first = try daemon.connect()
        func watch(_ pattern: String) throws -> ByteSocket {
            let socket = try ByteSocket(path: daemon.socketPath)
            try socket.send("HELLO 3\r\nSTATE.WATCH \(pattern)\r\n")
            return socket
        }
        let second = try watch("seen/a")
        try expect(second, "epoch")
        let third = try watch("seen/b")
        try expect(
            third,
            "LIMIT uid \(getuid()) already has 1 watch for the rule, the limit is 1 (rule 2, line 1, limits.watches)"
        )
        let refused = try ByteSocket(path: daemon.socketPath)
        try expect(
            refused,
            "LIMIT uid \(getuid()) already has 3 connections, the limit is 3 (rule 1, line 1, limits.connections)"
        )
        second.end()
        try #require(eventually { (try? daemon.connect().set([1], for: "k")) != nil })
        #expect(try first.value(for: "k") == [1])
    }

    /// Receives until what came contains a text.
    private func expect(_ socket: ByteSocket, _ text: String) throws {
        var received = ""
        while !received.contains(text) {
            guard let bytes = try socket.receive() else {
                Issue.record("'\(text)' did not come, but: \(received)")
                return
            }
            received += String(decoding: bytes, as: UTF8.self)
        }
    }

    @Test func `a soft limit is logged once and refuses nothing`() throws {
        let daemon = try daemon("{ keys: 'few/', softLimits: { keys: 1, valueBytes: 2 } }")
        let client = try daemon.connect()
        for number in 0..<5 { _ = try set(client, "few/\(number)", "123") }
        func lines() -> [Substring] {
            daemon.log.split(separator: "\n").filter { $0.contains("softLimits") }
        }
        #expect(eventually { lines().count >= 2 })
        #expect(lines().count == 2, "\(lines())")
    }

    // MARK: Durability

    @Test func `a rule says how safe a change is before its writer goes on`() throws {
        let daemon = try daemon("{ keys: 'fast/', durability: 'memory' }")
        let client = try daemon.connect()
        for (words, durability) in [
            (["STATE.SET", "fast/a", "1"], "memory"), (["STATE.SET", "other", "1"], "synced"),
            (["STATE.SET", "fast/a", "1", "DURABILITY", "synced"], "synced"),
        ] {
            let result = try runCommand("redis-cli", ["-s", daemon.socketPath] + words)
            #expect(result.text.contains(durability), "\(words): \(result.text)")
        }
        let asked = try Statectl.run(
            daemon,
            "set",
            "fast/a",
            "2",
            "--durability",
            "synced",
            "--json"
        )
        #expect(asked.text.contains("synced"), "\(asked)")
        let ruled = try Statectl.run(daemon, "set", "fast/a", "3", "--json")
        #expect(ruled.text.contains("memory"), "\(ruled)")
        _ = try set(client, "fast/b", "1")
        _ = try set(client, "other", "2")
        daemon.kill()
        try daemon.start()
        // What came before a synced commit is as safe as that.
        #expect(try value(daemon.connect(), "fast/b") == "1")
    }
}
