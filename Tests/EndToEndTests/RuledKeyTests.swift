import Glibc
import StateClient
import StateEngine
import StateTestSupport
import Testing

/// Tests of what rules do beside checking values.
protocol RuledTests {
    var directory: TemporaryDirectory { get }
}

extension RuledTests {
    func daemon(_ rules: String) throws -> Daemon {
        try Daemon(["--config", try file(rules)])
    }

    func file(_ rules: String) throws -> String {
        let path = directory.path(of: "stated.json5")
        try write(Array("{ rules: [ \(rules) ] }".utf8), to: path)
        return path
    }

    func set(_ client: Client, _ key: String, _ value: String) throws(StateError) -> Int64 {
        try client.set(Array(value.utf8), for: Key(key)).revision
    }

    func value(_ client: Client, _ key: Key) throws(StateError) -> String? {
        try client.value(for: key).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Where rules keep keys, and for how long.
struct RuledKeyTests: RuledTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    // MARK: Memory

    @Test func `what changed is shown beside keys in memory, and a dry run is what a revert does`()
        throws
    {
        let daemon = try daemon(
            "{ keys: 'cache/', backing: 'memory' }, { keys: 'n/', schema: { type: 'integer' } }"
        )
        let client = try daemon.connect()
        let first = try set(client, "a", "1")
        _ = try set(client, "short", "1")
        _ = try client.set(Array("1".utf8), for: "soon", expiresAfter: .milliseconds(1))
        try #require(eventually { (try? value(client, "soon")) == .some(nil) })
        let middle = try client.sync()
        let last = try set(client, "a", "2")
        _ = try set(client, "cache/x", "1")
        let lines = "- a = 1\n+ a = 2\n"
        for end in [["\(last)"], []] {
            let words = ["--socket", daemon.socketPath, "diff", "\(middle)"] + end
            #expect(try Statectl.run(words).text == lines)
        }
        let back = ["--socket", daemon.socketPath, "revert", "--all", "--to", "\(first)"]
        let dry = try Statectl.run(back + ["--dry-run"])
        #expect(dry.text == "- a = 2\n+ a = 1\n- short = 1\n", "\(dry)")
        #expect(try Statectl.run(back).text == "2\n")
        #expect(try value(client, "cache/x") == "1")
        _ = try file("{ keys: 'a', schema: { type: 'integer', minimum: 2 } }")
        #expect(try Statectl.run(daemon, "reload").exitCode == 0)
        _ = try set(client, "a", "3")
        for words in [back, back + ["--dry-run"]] {
            let refused = try Statectl.run(words)
            #expect(refused.exitCode == 4 && refused.errorText.contains("REJECTED"), "\(refused)")
        }
    }

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
}
