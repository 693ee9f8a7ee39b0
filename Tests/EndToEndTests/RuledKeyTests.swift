import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// What rules do beside checking values: where keys live, how long, how many, and what they are when nobody has set them.
struct RuledKeyTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func daemon(_ rules: String) throws -> Daemon {
        try Daemon(["--config", try file(rules)])
    }

    private func file(_ rules: String) throws -> String {
        let path = directory.path(of: "stated.json5")
        try write(Array("{ rules: [ \(rules) ] }".utf8), to: path)
        return path
    }

    private func set(_ client: Client, _ key: String, _ value: String) throws(StateError) -> Int64 {
        try client.set(Array(value.utf8), for: Key(key)).revision
    }

    private func value(_ client: Client, _ key: Key) throws(StateError) -> String? {
        try client.value(for: key).map { String(decoding: $0, as: UTF8.self) }
    }

    // MARK: Memory

    @Test func `keys in memory are gone at a restart, in no history, and revisions go on`() throws {
        let daemon = try daemon("{ keys: 'cache/', backing: 'memory' }")
        let client = try daemon.connect()
        _ = try set(client, "stored", "1")
        let told = try set(client, "cache/a", "2")
        let entry = try #require(try client.entry(for: "cache/a"))
        #expect(entry.durability == "memory" && entry.revision == told)
        #expect(try client.entry(for: "stored")?.durability == "synced")
        #expect(try Statectl.run(daemon, "history", "cache/a").text == "")
        #expect(try Statectl.run(daemon, "list", "--at", "\(told)").text.contains("stored = 1"))
        daemon.kill()
        try daemon.start()
        let again = try daemon.connect()
        #expect(try value(again, "cache/a") == nil && value(again, "stored") == "1")
        #expect(try set(again, "cache/a", "3") > told)
        try daemon.stop()
        let check = try runCommand(builtProgram("stated"), ["--check", "--data", daemon.dataPath])
        #expect(check.exitCode == 0, "\(check.text)\(check.errorText)")
    }

    @Test func `a watch that resumes from before a restart gets a gap where keys are in memory`()
        throws
    {
        let daemon = try daemon("{ keys: 'cache/', backing: 'memory' }")
        let client = try daemon.connect()
        let stored = try set(client, "stored", "1")
        _ = try set(client, "cache/a", "2")
        _ = try set(client, "stored", "2")
        let lines = try Statectl.run(
            daemon,
            "watch",
            "stored",
            "--from",
            "\(stored)",
            "--count",
            "1",
            "--timeout",
            "10s"
        )
        #expect(lines.text.contains("stored\t2") && !lines.errorText.contains("gap"))
        let gap = try Statectl.run(
            daemon,
            "watch",
            "/",
            "--from",
            "\(stored)",
            "--count",
            "2",
            "--timeout",
            "10s"
        )
        #expect(gap.text.contains("cache/a\t2"), "\(gap.text)\(gap.errorText)")
        try daemon.restart()
        let after = try Statectl.run(
            daemon,
            "--json",
            "watch",
            "cache/",
            "stored",
            "--from",
            "\(stored)",
            "--count",
            "1",
            "--timeout",
            "10s"
        )
        #expect(!after.text.contains("cache/a") && after.text.contains("stored"))
    }

    @Test func `who asks for changes since a revision gets the state of keys in memory`() throws {
        let daemon = try daemon("{ keys: 'cache/', backing: 'memory' }")
        let client = try daemon.connect()
        let first = try set(client, "stored", "1")
        _ = try set(client, "cache/a", "2")
        _ = try set(client, "stored", "2")
        func changes(_ pattern: String) throws -> String {
            try runCommand(
                "redis-cli",
                ["-s", daemon.socketPath, "STATE.CHANGES", "SINCE", "\(first)", pattern]
            )
            .text
        }
        #expect(try changes("stored").hasPrefix("ok\n"))
        let state = try changes("/")
        #expect(state.hasPrefix("gap\n") && state.contains("cache/a\n2\n"), "\(state)")
    }

    @Test func `a restart that changes the backing moves keys as one commit`() throws {
        let daemon = try daemon("{ keys: 'none', readonly: true }")
        let client = try daemon.connect()
        for number in 0..<100 { _ = try set(client, "cache/\(number)", "\(number)") }
        let before = try set(client, "other", "1")
        try daemon.stop()
        _ = try file("{ keys: 'cache/', backing: 'memory' }")
        try daemon.start()
        let moved = try daemon.connect()
        #expect(try value(moved, "cache/7") == "7")
        let revisions = try ["cache/1", "cache/99"].map {
            try moved.entry(for: Key($0))?.revision ?? 0
        }
        #expect(Set(revisions).count == 1 && revisions[0] > before)
        #expect(eventually { daemon.log.contains("100 keys moved") })
        #expect(
            try Statectl.run(daemon, "list", "cache/", "--count", "--at", "\(before)").text
                == "100\n"
        )
        try daemon.stop()
        #expect(
            try runCommand(builtProgram("stated"), ["--check", "--data", daemon.dataPath]).exitCode
                == 0
        )
        try daemon.start()
        #expect(try value(daemon.connect(), "cache/7") == nil)
        #expect(try value(daemon.connect(), "other") == "1")
    }

    @Test
    func `a reload says where keys will live, the next start moves them, and nothing is lost`()
        throws
    {
        let daemon = try daemon("{ keys: 'app/', limits: { valueBytes: 100 } }")
        var client = try daemon.connect()
        let names = (0..<20).map { "app/\($0)/value" }
        for name in names { _ = try set(client, name, "value of \(name)") }
        let first = directory.path(of: "first")
        let second = directory.path(of: "second")
        for path in [first, second] { try #require(mkdir(path, 0o700) == 0) }
        try write(Array("theirs".utf8), to: second + "/own")
        func file(_ name: String, in directory: String) -> String? {
            let path = directory + name.dropFirst("app".count)
            return (try? readFile(path)).map { String(decoding: $0, as: UTF8.self) }
        }
        func check(_ backing: String, _ place: String?) throws {
            for name in names {
                #expect(try value(client, Key(name)) == "value of \(name)", "\(backing)")
                for directory in [first, second] {
                    let expected = directory == place ? "value of \(name)" : nil
                    #expect(file(name, in: directory) == expected, "\(backing) \(directory)")
                }
            }
            let entry = try #require(try client.entry(for: Key(names[0])))
            #expect(entry.durability == (backing == "memory" ? "memory" : "synced"))
            let explanation = try Statectl.run(daemon, "explain", names[0]).text
            #expect(explanation.contains("backing            \"\(backing)\""), "\(explanation)")
            let listed = try Statectl.run(daemon, "list", names[0], "--long").text
            #expect(listed.contains("\t\(backing)\t"), "\(listed)")
        }
        let rules: [(backing: String, place: String?)] = [
            ("file", first), ("file", second), ("sqlite", nil), ("file", first), ("memory", nil),
            ("file", second),
        ]
        var (last, lastPlace) = ("sqlite", String?.none)
        for (number, (backing, place)) in rules.enumerated() {
            let directory = place.map { ", directory: '\($0)'" } ?? ""
            _ = try self.file("{ keys: 'app/', backing: '\(backing)'\(directory) }")
            for _ in 0..<2 {
                let reload = try Statectl.run(daemon, "reload")
                #expect(reload.exitCode == 0 && reload.text.contains(" (needs a restart)\n"))
                try check(last, lastPlace)
            }
            // What is written under the new rule lives where its key does.
            for name in names { _ = try set(client, name, "value of \(name)") }
            try check(last, lastPlace)
            if number % 2 == 0 { daemon.kill() } else { try daemon.stop() }
            try daemon.start()
            client = try daemon.connect()
            if last == "memory" {
                #expect(try client.count(of: "app/") == 0)
                for name in names { _ = try set(client, name, "value of \(name)") }
            }
            (last, lastPlace) = (backing, place)
            try check(backing, place)
            // What was in the directory is adopted.
            if number == 1 { #expect(try value(client, "app/own") == "theirs") }
            #expect(try Statectl.run(daemon, "reload").text.hasPrefix("nothing has changed\n"))
        }
        _ = try set(client, "app/own", "ours")
        #expect(file("app/own", in: second) == "ours")
        // A directory that cannot be used changes nothing.
        _ = try self.file("{ keys: 'app/', backing: 'file', directory: '/nowhere/at/all' }")
        let refused = try Statectl.run(daemon, "reload")
        #expect(refused.exitCode != 0 && refused.errorText.contains("/nowhere/at/all"))
        _ = try set(client, "app/own", "again")
        #expect(file("app/own", in: second) == "again")
        daemon.kill()
        _ = try self.file("{ keys: 'app/', backing: 'sqlite' }")
        try daemon.start()
        let again = try daemon.connect()
        #expect(try value(again, "app/own") == "again" && file("app/own", in: second) == nil)
        for name in names { #expect(try value(again, Key(name)) == "value of \(name)") }
        try daemon.stop()
        #expect(
            try runCommand(builtProgram("stated"), ["--check", "--data", daemon.dataPath]).exitCode
                == 0
        )
    }

    @Test func `a rule that is taken away under a wider one leaves its keys`() throws {
        let place = directory.path(of: "files")
        try #require(mkdir(place, 0o700) == 0)
        let wide = "{ keys: 'app/', backing: 'file', directory: '\(place)' }"
        let daemon = try daemon("\(wide), { keys: 'app/secret/', backing: 'sqlite' }")
        let client = try daemon.connect()
        _ = try set(client, "app/secret/a", "1")
        _ = try set(client, "app/b", "2")
        try daemon.stop()
        _ = try file(wide)
        try daemon.start()
        #expect(try value(daemon.connect(), "app/secret/a") == "1")
        #expect(try readFile(place + "/secret/a") == Array("1".utf8))
        _ = try file("\(wide), { keys: 'app/secret/', backing: 'memory' }")
        #expect(
            try Statectl.run(daemon, "reload").text.hasPrefix(
                "rule 2 (app/secret/) backing: none → \"memory\" (needs a restart)\n"
            )
        )
        #expect(try readFile(place + "/secret/a") == Array("1".utf8))
        try daemon.restart()
        #expect(try value(daemon.connect(), "app/secret/a") == "1")
        #expect((try? readFile(place + "/secret/a")) == nil)
    }

    @Test func `more than a transaction may hold does not move, and the way is said`() throws {
        let daemon = try daemon("{ keys: 'none', readonly: true }")
        let client = try daemon.connect()
        for number in 0..<30 {
            _ = try client.set([UInt8](repeating: 1, count: 4_000), for: Key("cache/\(number)"))
        }
        try daemon.stop()
        try write(
            Array(
                "{ limits: { valueBytes: 50000, transactionBytes: 65536 }, rules: [ { keys: 'cache/', backing: 'memory' } ] }"
                    .utf8
            ),
            to: directory.path(of: "stated.json5")
        )
        let refused = try runCommand(
            builtProgram("stated"),
            [
                "--config", directory.path(of: "stated.json5"), "--socket", daemon.socketPath,
                "--data", daemon.dataPath,
            ]
        )
        #expect(refused.exitCode == 2)
        #expect(refused.errorText.contains("30 keys with"))
        #expect(refused.errorText.contains("statectl export"))
        _ = try file("")
        try daemon.start()
        #expect(try daemon.connect().count(of: "cache/") == 30)
    }

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
        refused("few/c", "1", .limit, "2 keys; the limit is 2 (rule 1, limits.keys)")
        _ = try set(client, "few/b", "2")
        _ = try client.delete(["few/a"])
        _ = try set(client, "few/c", "1")

        _ = try set(client, "small/a", String(repeating: "x", count: 50))
        refused("small/b", "12345678", .limit, "57 bytes; the limit is 64 (rule 2, limits.bytes)")
        _ = try set(client, "small/a", "1")
        _ = try set(client, "small/b", "12345678")

        refused("short/a", "12345", .tooBig, "the limit is 4 (rule 3, limits.valueBytes)")
        _ = try set(client, "short/a", "1234")

        let words = "nested deeper than 2 at byte 2 (rule 6, limits.depth)"
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
            refusal?.message.contains("3 times; try again (rule 4, limits.writesPerSecond)") == true
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
            "LIMIT uid \(getuid()) already has 1 watch for the rule, the limit is 1 (rule 2, limits.watches)"
        )
        let refused = try ByteSocket(path: daemon.socketPath)
        try expect(
            refused,
            "LIMIT uid \(getuid()) already has 3 connections, the limit is 3 (rule 1, limits.connections)"
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
        _ = try set(client, "fast/b", "1")
        _ = try set(client, "other", "2")
        daemon.kill()
        try daemon.start()
        // What came before a synced commit is as safe as that.
        #expect(try value(daemon.connect(), "fast/b") == "1")
    }
}
